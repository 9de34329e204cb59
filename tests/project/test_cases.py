"""A test of many cases in one item: each case is run, and a failure names those that fail."""

import pytest

from tests.cases import case, each_case


def test_each_case_is_run_with_its_arguments_and_the_fixtures_of_all():
    seen = []
    each_case("first, second", [(1, 2), pytest.param(3, 4, id="named")])(lambda **arguments: seen.append(arguments))(fixture="f")
    assert seen == [{"fixture": "f", "first": 1, "second": 2}, {"fixture": "f", "first": 3, "second": 4}]


async def test_a_coroutine_is_awaited_for_each_case():
    seen = []

    @each_case("number", range(3))
    async def run(number):
        seen.append(number)

    await run()
    assert seen == [0, 1, 2]


def test_the_failure_shown_names_its_case_and_the_others():
    @each_case("number", range(5))
    def run(number):
        with pytest.raises(ValueError):
            int("7" if number % 2 else "no")

    with pytest.raises(pytest.fail.Exception) as failure:
        run()
    assert failure.value.__notes__ == ["case: number=1\nalso failed: number=3"]


def test_an_error_names_the_case_of_a_loop():
    with pytest.raises(KeyError) as failure, case("v3"):
        {}["field"]
    assert failure.value.__notes__ == ["case: v3"]


def test_a_skip_is_a_skip():
    with pytest.raises(pytest.skip.Exception):
        each_case("reason", ["not here"])(pytest.skip)()
