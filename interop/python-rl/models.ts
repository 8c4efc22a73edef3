import {
  type ComponentName,
  describeNeeding,
  type ModelRequest,
  type ScriptedOpenAi,
  type ScriptedTurn,
  scriptedOpenAi,
} from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect } from "vitest";
import { type PythonOptions, runPython } from "./python.ts";

/** What a good model samples in the two turns of an episode. */
export const CALL = '<call>echo {"text":"hello"}<end>';
export const REPLY = "Done.<end>";
export const MODEL_FAILED = expect.stringMatching(/unscored \(model, at play\): .*answered 400: out of order/);

const says =
  (text: string) =>
  ({ turn }: ModelRequest): ScriptedTurn =>
    turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text } }] } : "Done.";

const starts = {
  good: () => scriptedOpenAi(says("hello"), { tokens: { engine: "sglang", weightVersion: "4" } }),
  /** Its episodes are scored, but not with 1. */
  wrong: () => scriptedOpenAi(says("goodbye"), { tokens: { engine: "vllm" } }),
  broken: () => scriptedOpenAi(() => ({ status: 400, message: "out of order" }), { tokens: { engine: "vllm" } }),
  /** Its chat template renders an earlier answer differently. */
  drifting: () => scriptedOpenAi(says("hello"), { tokens: { engine: "vllm", drifts: true } }),
  /** It never answers. */
  silent: () => scriptedOpenAi(() => new Promise(() => {})),
};
export type ModelName = keyof typeof starts;

/** Runs a script with a framework, the address of the platform and those of the models, and returns its report. */
// biome-ignore lint/suspicious/noExplicitAny: each framework reports its own objects
export type Play = (script: string, framework: string, options?: PythonOptions & { models?: readonly ModelName[] }) => Promise<any>;

/** What the model of this name was asked in the last play, without the conversation. */
export type AskedOf = (model: ModelName) => readonly Record<string, unknown>[];

/** A suite with a platform that has the environment echo, and with models for rollouts. */
export function describeWithModels(component: ComponentName, title: string, body: (play: Play, askedOf: AskedOf) => void): void {
  describeNeeding(component, title, () => {
    let platform: Platform;
    const running: ScriptedOpenAi[] = [];
    const latest = new Map<ModelName, ScriptedOpenAi>();
    beforeAll(async () => {
      platform = await startPlatform();
      await publish(platform, projects.echo);
    });
    afterAll(async () => {
      await platform?.close();
      await Promise.all(running.map((model) => model.close()));
    });
    const askedOf: AskedOf = (name) =>
      latest.get(name)?.requests.map(({ body: { messages: _messages, tools: _tools, ...settings } }) => settings) ?? [];
    body(async (script, framework, { models = ["good", "broken", "drifting"], variables = {}, ...options } = {}) => {
      const addresses: Record<string, string> = {};
      for (const name of models) {
        const model = await starts[name]();
        running.push(model);
        latest.set(name, model);
        addresses[name] = model.baseUrl;
      }
      return await runPython(script, [framework, platform.controlUrl, JSON.stringify(addresses)], {
        ...options,
        variables: { AENV_SYSTEM_URL: platform.controlUrl, AENV_API_KEY: "", MODEL_KEY: "k", ...variables },
      });
    }, askedOf);
  });
}
