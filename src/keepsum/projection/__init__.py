"""The nearest table without negative counts that keeps every total, from released counts alone.

``nearest.nearest`` finds it, part by part; ``tables`` and ``programs`` solve the parts where totals overlap.
"""
