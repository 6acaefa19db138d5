"""How close Markov chains come to their target, from the meeting times of coupled chains.

``observe.observe_all`` measures the chains of a plan, ``bounds.tv_upper_bound`` is the bound that meeting times
(``times.MeetingTimes``) give, and ``plot`` draws both.
"""
