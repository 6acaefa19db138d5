"""An SDMX-CSV file of the tests, and how it is read or refused."""

import pytest

import keepsum as ks

SECRET = 8675309
HEADER = "DATAFLOW,FREQ,SEX,AGE,TIME_PERIOD,OBS_VALUE,OBS_STATUS,CONF_STATUS,UNIT_MEASURE\n"
FLOW = "NSI:DF_POP(1.0)"
ROWS = (
    f"{FLOW},A,F,Y0T14,2021,{SECRET},A,C,PS\n"
    f"{FLOW},A,F,Y_GE15,2021,6,A,C,PS\n"
    f"{FLOW},A,M,Y0T14,2021,7,E,N,PS\n"
    f"{FLOW},A,M,Y_GE15,2021,8,A,C,PS\n"
)
DOMAIN = {"FREQ": ["A"], "SEX": ["F", "M"], "AGE": ["Y0T14", "Y_GE15"], "TIME_PERIOD": ["2021"]}


def read(tmp_path, text=HEADER + ROWS, name="population.csv", **arguments):
    file = tmp_path / name
    file.write_text(text)
    return ks.read_table(file, **({"count": "OBS_VALUE", "domain": DOMAIN} | arguments))


def refused(tmp_path, text, message, **arguments):
    with pytest.raises(ks.InputError, match=message) as caught:
        read(tmp_path, text, **arguments)
    assert caught.value.__context__ is None
    assert str(SECRET) not in str(caught.value)
    return str(caught.value)
