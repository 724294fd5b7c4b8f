"""Arguments that are left out have the value that the list of defaults promises."""


def test_defaults_are_those_of_the_list(defaults):
    found, promised = defaults("data")
    assert found == promised and found
