import { episodeAbilities, episodeStatus, isObject, roleRewards, type Task } from "@aenv/contract";
import { type Check, need, type Subject } from "./check.ts";
import { act, digestOf, oracleOf, parsed, reset } from "./episode.ts";
import { NotOffered, Violation } from "./violation.ts";
import { cut, type Wire } from "./wire.ts";

/** What every environment with roles owes. */
export const roleChecks: readonly Check[] = [
  {
    name: "lets each role act in its turn only",
    run: async (subject) => {
      const roles = await needRoles(subject);
      await reset(subject.wire, subject.tasks[0] ?? null);
      const turn = await turnOf(subject.wire);
      const unknown = turn.find((role) => !roles.includes(role));
      if (unknown !== undefined || turn.length === 0)
        throw new Violation(
          `GET /episode/status must name in 'turn' roles of the environment after a reset; it has ${JSON.stringify(turn)}`,
        );
      const waits = roles.find((role) => !turn.includes(role));
      if (waits === undefined) return "all of them act at once";
      const [first] = turn.map((role) => subject.wire.as(role));
      const action = first === undefined ? undefined : (await oracleOf({ ...subject, wire: first }))?.find((one) => "tool" in one);
      if (action === undefined || !("tool" in action)) return "without an oracle, not that calls out of turn are refused";
      const before = await digestOf(subject);
      const result = await subject.wire.as(waits).rpc("tools/call", { name: action.tool, arguments: action.arguments });
      if (result.isError !== true) throw new Violation(`a call of ${waits} out of turn must have a result with "isError": true`);
      if ((await digestOf(subject)) !== before) throw new Violation("a call out of turn has changed the digest of the state");
      return undefined;
    },
  },
  {
    name: "its oracles play to the end, each role is scored, and the same again",
    run: async (subject) => {
      need(subject, "oracle");
      const roles = await needRoles(subject);
      const played: string[] = [];
      for (const task of subject.tasks.length === 0 ? [null] : subject.tasks) {
        const [first, second] = [await play(subject, roles, task), await play(subject, roles, task)];
        if (first === null || second === null) continue;
        if (first !== second) throw new Violation(`the same actions lead to ${first}, and to ${second} when they are played again`);
        played.push(first);
      }
      if (played.length === 0) throw new NotOffered("its oracles do not play to the end");
      return cut(played.join("; "));
    },
  },
];

/** The names of the roles; none if the environment has no roles. */
export async function rolesOf(wire: Wire): Promise<readonly string[]> {
  const { json } = await wire.send("GET", "/episode");
  const { data } = episodeAbilities.partial().safeParse(isObject(json) ? json.data : null);
  return Object.keys(data?.roles ?? {});
}

async function needRoles({ wire }: Subject): Promise<readonly string[]> {
  const roles = await rolesOf(wire);
  if (roles.length === 0) throw new NotOffered("it has one agent");
  return roles;
}

async function turnOf(wire: Wire): Promise<readonly string[]> {
  const { done, turn = [] } = parsed(episodeStatus, await wire.ask("GET", "/episode/status"), "GET /episode/status");
  return done ? [] : turn;
}

/** More actions than an oracle needs. */
const MOST_ACTIONS = 1_000;

/** The scores of the roles after their oracles have played; null if they do not come to an end. */
async function play(subject: Subject, roles: readonly string[], task: Task | null): Promise<string | null> {
  await reset(subject.wire, task);
  let actions = 0;
  for (let turn = await turnOf(subject.wire); turn.length > 0; turn = await turnOf(subject.wire)) {
    for (const role of turn) {
      const own = { ...subject, wire: subject.wire.as(role) };
      const [action] = (await oracleOf(own)) ?? [];
      if (action === undefined || ++actions > MOST_ACTIONS) return null;
      await act(own, action);
    }
  }
  const rewards = parsed(roleRewards, await subject.wire.ask("POST", "/task/reward", {}), "POST /task/reward");
  const scores = roles.map((role) => {
    const outcome = rewards.roles[role]?.outcome;
    if (outcome?.kind !== "scored")
      throw new Violation(`${role} has no score after the oracles have played: ${outcome?.message ?? "no outcome"}`);
    return `${role} ${outcome.reward}`;
  });
  return `${task?.id ?? "no task"}: ${scores.join(", ")}`;
}
