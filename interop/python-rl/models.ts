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

/** A suite with a platform that has the environment echo, and with models for rollouts. */
export function describeWithModels(component: ComponentName, title: string, body: (play: Play) => void): void {
  describeNeeding(component, title, () => {
    let platform: Platform;
    const running: ScriptedOpenAi[] = [];
    beforeAll(async () => {
      platform = await startPlatform();
      await publish(platform, projects.echo);
    });
    afterAll(async () => {
      await platform?.close();
      await Promise.all(running.map((model) => model.close()));
    });
    body(async (script, framework, { models = ["good", "broken", "drifting"], variables = {}, ...options } = {}) => {
      const addresses: Record<string, string> = {};
      for (const name of models) {
        const model = await starts[name]();
        running.push(model);
        addresses[name] = model.baseUrl;
      }
      return await runPython(script, [framework, platform.controlUrl, JSON.stringify(addresses)], {
        ...options,
        variables: { AENV_SYSTEM_URL: platform.controlUrl, AENV_API_KEY: "", MODEL_KEY: "k", ...variables },
      });
    });
  });
}
