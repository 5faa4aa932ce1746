"""Malformed input of every kind is refused in one line, with bounded memory and time; see docs/RELIABILITY.md."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaigns import GENERATORS
from harness import Campaign, Case, ForkServer, run_case
from misbehaving import BREACHES
from world import World, make_world

CASES = 12  # of each generator, in the fast suite
MORE_CASES = int(os.environ.get("CAMPAIGN_CASES", "300"))  # of each generator, behind `slow`


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """What runs the cases."""
    started = ForkServer()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def world(make_once) -> World:
    """What malformed inputs are made of."""
    return World(make_once("campaign", make_world))


@pytest.mark.parametrize("breach", BREACHES)
def test_the_harness_notices(breach: str, server: ForkServer, tmp_path: Path):
    found = run_case(server, Case("", "misbehaving", lambda folder: [breach]), tmp_path / "case", cpu=2, idle=2)
    assert any(one.startswith(breach.partition(",")[0]) for one in found), found


def test_the_harness_accepts_a_clear_refusal(server: ForkServer, tmp_path: Path):
    assert run_case(server, Case("", "misbehaving", lambda folder: ["nothing"]), tmp_path / "case") == []


def test_some_of_all_malformed_inputs_keep_the_promises(server: ForkServer, world: World, tmp_path: Path):
    campaign = Campaign(server, tmp_path)
    for name, make in GENERATORS.items():
        campaign.run(name, make(world), count=CASES)
    campaign.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_thousands_of_malformed_inputs_keep_the_promises(name: str, server: ForkServer, world: World, tmp_path: Path):
    campaign = Campaign(server, tmp_path)
    campaign.run(name, GENERATORS[name](world), count=MORE_CASES)
    print(f"{name}: {len(campaign.seen)} cases")
    campaign.check()
