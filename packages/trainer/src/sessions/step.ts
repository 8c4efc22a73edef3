import { type ChatMessage, PlatformError, type SessionAction, type SessionStep, textOf } from "@aenv/contract";
import { type Episode, Match, type Played } from "@aenv/rollout";

/** The answer to a step of an episode that is over. */
const OVER_TEXT = "not run: the episode is over";
export const OVER: SessionStep = {
  observation: OVER_TEXT,
  content: [{ type: "text", text: OVER_TEXT }],
  is_error: true,
  done: true,
  reward: null,
};

/** Calls a tool, or says something, in an episode of one agent or of several. */
export function takeStep(episode: Played, action: SessionAction): Promise<SessionStep> {
  if (episode instanceof Match) return takeRoleStep(episode, action);
  if (action.role === undefined) return takeOwnStep(episode, action);
  throw new PlatformError("request.invalid", `the environment has no roles; leave out 'role', which is '${action.role}'`);
}

/** A step of one role. Roles whose turn begins with it are told what they see. */
async function takeRoleStep(match: Match, action: SessionAction): Promise<SessionStep> {
  const { role } = action;
  if (role === undefined) {
    throw new PlatformError("request.invalid", `name the 'role' that acts; the roles are ${match.roleNames.join(", ")}`);
  }
  const before = match.turn;
  const step = await takeOwnStep(match.part(role), action);
  await match.acted(role);
  const rewards: Record<string, number | null> = {};
  for (const name of match.roleNames) {
    if (name === role) rewards[name] = step.reward;
    else rewards[name] = match.abilities.stepRewards ? (await match.instance.episode.stepReward({ role: name })).reward : null;
  }
  const observations: Record<string, string> = {};
  for (const name of match.turn) {
    // A role that could act before this step, and still can, has been told then what it sees.
    if (name !== role && before.includes(name)) continue;
    const seen = await match.news(name);
    if (seen !== null) observations[name] = seen;
  }
  return { ...step, done: match.isDone, turn: [...match.turn], rewards, observations };
}

async function takeOwnStep(episode: Episode, action: SessionAction): Promise<SessionStep> {
  const { messages, steps } = episode.record;
  const before = { messages: messages.length + 1, steps: steps.length };
  const message = messageOf(action, messages.length);
  episode.addMessage(message);
  const reason = await episode.take(message);
  const said = messages.slice(before.messages);
  const step = steps[before.steps];
  const observation = said.map(textOf).join("\n\n");
  return {
    observation,
    content: step?.result.content ?? (observation === "" ? [] : [{ type: "text", text: observation }]),
    ...(step?.result.structured_content !== undefined && { structured_content: step.result.structured_content }),
    is_error: step?.result.is_error ?? false,
    done: reason !== null,
    reward: step?.reward ?? null,
  };
}

/** What an agent reads at the beginning. */
export function observationOf(messages: readonly ChatMessage[]): string {
  const shown = messages.filter(({ role }) => role !== "system" && role !== "developer");
  return shown.map(textOf).join("\n\n");
}

function messageOf(action: SessionAction, at: number): ChatMessage {
  if ("text" in action) return { role: "assistant", content: action.text };
  const { name, arguments: args } = action.tool;
  return {
    role: "assistant",
    content: "",
    tool_calls: [{ id: `call_${at}`, type: "function", function: { name, arguments: JSON.stringify(args) } }],
  };
}
