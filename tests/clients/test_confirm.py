"""A lock is opened only after a person has agreed: by a form that the client shows, in both lifecycles of the official SDK,
over HTTP and through the bridge; and a model that agrees with itself is refused."""

import asyncio

import pytest
from mcp_types import ElicitResult

MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])
UNLOCK = ("switch_device", {"device": "front-door", "to": "unlocked"})


@pytest.fixture
def door(hub, sim):
    sim("front-door", kind="lock")
    hub.online("front-door")
    return hub


def moved(hub):
    return hub.total("truetwin_operations_total")


def asked(hub, way, mode, said):
    """Unlocks with a client whose person says this: the answer, and the questions that were put."""
    questions = []

    async def put(_context, params):
        questions.append(params)
        return said

    async def run():
        async with way(hub, mode, elicitation_callback=put) as client:
            return (await client.call_tool(*UNLOCK)).structured_content

    return asyncio.run(run()), questions


@MODES
def test_s7_2_after_a_yes_in_the_clients_form_the_door_is_unlocked(door, way, mode):
    answer, questions = asked(door, way, mode, ElicitResult(action="accept", content={"confirm": True}))
    assert (answer["success"], answer["outcome"]) == (True, "converged"), answer
    assert answer["device_state"] == {"locked": "unlocked"}
    assert len(questions) == 1 and "front-door" in questions[0].message, questions
    assert list(questions[0].requested_schema["properties"]) == ["confirm"]


@MODES
@pytest.mark.parametrize(
    "said",
    [
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
        ElicitResult(action="accept", content={"confirm": False}),
    ],
    ids=["decline", "cancel", "no"],
)
def test_s7_2_without_a_yes_nothing_moves(door, way, mode, said):
    answer, questions = asked(door, way, mode, said)
    assert answer["success"] is False and len(questions) == 1, answer
    assert moved(door) == 0


@MODES
def test_s7_2_a_model_that_agrees_with_itself_is_refused(door, way, mode):
    async def run():
        async with way(door, mode) as client:
            question = (await client.call_tool(*UNLOCK)).structured_content
            code = {"code": question["code"]}
            answers = [(await client.call_tool("confirm_operation", code)).structured_content for _ in range(2)]
            return question, answers

    question, (early, burnt) = asyncio.run(run())
    assert (question["result"], question["outcome"]) == ("ask_user", "confirmation_required"), question
    assert question["code"] not in question["say"], "a model that speaks the sentence gives nothing away"
    assert (early["success"], early["outcome"]) == (False, "code_too_early"), early
    assert (burnt["success"], burnt["outcome"]) == (False, "code_wrong"), burnt
    assert moved(door) == 0
