import { isObject } from "@aenv/contract";
import type { RunSettings } from "@aenv/rollout";
import { Failure } from "../terminal/failure.ts";
import { type AgentOptions, agentKinds, modelApis } from "./agent-options.ts";
import { scriptedActions } from "./recorded-agents.ts";

/** The options that made the agent of a run. */
export function agentOfRun({ agent: { name, settings }, model }: RunSettings): { agent: AgentOptions; program: readonly string[] } {
  const { path, command, api, baseUrl, sampling = {}, streams, wantsTokens, contextTokens } = settings;
  const withModel = { ...(model !== null && { model }), tokens: wantsTokens === true };
  if (typeof path === "string") return { agent: { agent: "module", agentFile: path, ...withModel }, program: [] };
  if (Array.isArray(command))
    return { agent: { agent: "command", ...withModel, ...insideOf(settings.inside) }, program: command.map(String) };
  const actions = scriptedActions.safeParse(settings.actions);
  if (name === "scripted" && actions.success) return { agent: { agent: "scripted", actions: actions.data }, program: [] };
  if (name === "replay" && typeof settings.run === "string") return { agent: { agent: "replay", replayFrom: settings.run }, program: [] };
  const kind = agentKinds.find((one) => one === name);
  if (kind === undefined) {
    throw new Failure(`the agent '${name}' cannot be made again from its settings`, {
      exit: "usage",
      hint: "Play the run again with: aenv rollout",
    });
  }
  const knownApi = modelApis.find((one) => one === api);
  const pairs = Object.entries(sampling as object).map(([key, value]) => [key, JSON.stringify(value)]);
  return {
    agent: {
      agent: kind,
      ...withModel,
      ...(typeof baseUrl === "string" && { baseUrl }),
      ...(knownApi && { api: knownApi }),
      ...(typeof contextTokens === "number" && { contextTokens }),
      stream: streams === true,
      sampling: Object.fromEntries(pairs),
    },
    program: [],
  };
}

function insideOf(inside: unknown): Partial<AgentOptions> {
  if (!isObject(inside)) return {};
  const { install, files, user } = inside;
  return {
    inside: true,
    ...(typeof install === "string" && { install }),
    ...(typeof files === "string" && { installFiles: files }),
    ...(typeof user === "string" && { agentUser: user }),
  };
}
