import { expect, it } from "vitest";
import { ModelHttp } from "../models/http.ts";
import { type AgentChoice, agentNames, type NamedAgent, namedAgents } from "./agents.ts";
import type { Model } from "./model.ts";

const http = new ModelHttp({ retries: 0, timeoutMs: 1_000 });
const choice: AgentChoice = {
  contextTokens: undefined,
  model: (api = "chat"): readonly [Model, ModelHttp] => [{ api, baseUrl: "http://127.0.0.1:1", apiKey: "none", name: "m" }, http],
  file: () => "unused",
  actions: () => [{ say: "Done." }],
  run: () => [{ name: "run", trajectories: async function* () {} }, "run"],
  program: () => ({ command: ["true"], folder: "/", isInside: false }),
};

it.each(agentNames.filter((name) => name !== "module"))(
  "an agent has the name that it is chosen by, so that a run of it can be reproduced: %s",
  async (name) => {
    const { open }: NamedAgent = namedAgents[name];
    expect((await open(choice)).name).toBe(name);
  },
);
