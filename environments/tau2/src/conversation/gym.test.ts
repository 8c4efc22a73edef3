import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { textAt } from "@aenv/benchmark/testing";
import { describeNeeding, tau2Path } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { isParticipant, isToolMessage, type Message, type ParticipantMessage } from "../core/messages/messages.ts";
import { userTools } from "../core/user-prompt.ts";
import { openDomain } from "../domains/index.ts";
import { openLibrary } from "../fixtures/library.ts";
import { flipRoles } from "../llm/chat.ts";
import { readJson } from "../python/json/reader.ts";
import { repr } from "../python/repr.ts";
import { Dict, PyFloat, type PyValue } from "../python/values/values.ts";
import { dictAt, listAt } from "../testing/replay/vectors.ts";
import { Gym } from "./gym.ts";
import type { Participant } from "./orchestrator.ts";

describe("an episode in the gym", () => {
  const open = (id: string, ...replies: readonly string[]): Gym => {
    const domain = openLibrary();
    const task = domain.tasks.find(id);
    if (task === undefined) throw new Error(`the library has no task ${id}`);
    const rest = [...replies];
    const user: Participant = { reply: async () => ({ role: "user", content: rest.shift() ?? null, tool_calls: null }) };
    return new Gym({ domain, task, isSolo: false, user, judge: null });
  };

  it("starts with the user's first message, and is scored when the user stops", async () => {
    const gym = open("lend", "Tides, please", "###STOP###");
    expect(await gym.reset()).toBe("user: Tides, please");
    expect(await gym.step("lend(book_id='b2', member='cy')")).toMatchObject({ reward: 0, terminated: false });
    expect(await gym.step("It costs 7.5")).toMatchObject({ observation: "user: ###STOP###", reward: 1, terminated: true });
    expect(await gym.step("more")).toMatchObject({ observation: "", reward: 0, terminated: true });
  });

  it("is unscored if the task needs a judge and there is none", async () => {
    const gym = open("kindly", "hello");
    await gym.reset();
    const { reward, outcome } = await gym.step("done()");
    expect([reward, outcome]).toEqual([null, { reward: null, reason: expect.stringContaining("no judge model is configured") }]);
  });

  it("takes no step before it is reset", async () => {
    await expect(open("lend").step("done()")).rejects.toThrow("Call reset() first");
  });
});

/** A user with the replies of a vector; records its requests. */
class RecordedUser implements Participant {
  readonly requests: (readonly Message[])[] = [];
  readonly #replies: PyValue[];

  constructor(replies: readonly PyValue[]) {
    this.#replies = [...replies];
  }

  async reply(history: readonly Message[]): Promise<ParticipantMessage> {
    this.requests.push(flipRoles(history));
    const reply = this.#replies.shift();
    if (typeof reply === "string") return { role: "user", content: reply, tool_calls: null };
    if (!(reply instanceof Dict)) throw new Error("the vectors have no more replies");
    if (reply.has("raises")) throw new Error(textAt(reply, "raises"));
    const tool_calls = listAt(reply, "t").map((call, i) => {
      const [name, args] = call as [string, Dict];
      return { id: `c${i}`, name, arguments: args, requestor: "user" as const };
    });
    const content = reply.get("c");
    return { role: "user", content: typeof content === "string" ? content : null, tool_calls };
  }
}

function stored(message: Message): PyValue {
  const content = "content" in message ? message.content : null;
  if (isToolMessage(message)) return [message.role, content, message.requestor, message.error, message.id];
  const calls = isParticipant(message) ? message.tool_calls : null;
  return [message.role, content, calls?.map(({ id, name, arguments: args, requestor }) => [id, name, args, requestor]) ?? null];
}

function recorded(message: Dict): PyValue {
  const at = (key: string): PyValue => message.get(key) ?? null;
  if (at("role") === "tool") return [at("role"), at("content"), at("requestor"), at("error"), at("id")];
  const calls = at("tool_calls");
  const list = Array.isArray(calls) ? (calls as Dict[]) : null;
  const fields = ["id", "name", "arguments", "requestor"];
  return [at("role"), at("content"), list?.map((call) => fields.map((field) => call.get(field) ?? null)) ?? null];
}

describeNeeding("tau2-data", "the reference's transcripts", () => {
  it("are reproduced", async () => {
    const file = readJson(gunzipSync(readFileSync(join(tau2Path, "golden/core-vectors.json.gz"))).toString("utf8"));
    const transcripts = file instanceof Dict ? listAt(file, "gym_transcripts").filter((value) => value instanceof Dict) : [];
    expect(transcripts.length).toBeGreaterThan(0);
    for (const [number, vector] of transcripts.entries()) {
      const domain = openDomain(textAt(vector, "domain"), join(tau2Path, "data"));
      const task = domain.tasks.find(textAt(vector, "task_id"));
      if (task === undefined) throw new Error("the vectors have an unknown task");
      const options = dictAt(vector, "options");
      const isSolo = options.get("solo_mode") === true;
      const user = isSolo ? null : new RecordedUser(listAt(vector, "user_llm_replies"));
      const maxSteps = options.get("max_steps");
      const gym = new Gym({
        domain,
        task,
        isSolo,
        user,
        judge: null,
        showsAllMessages: options.get("all_messages_as_observation") === true,
        ...(typeof maxSteps === "number" ? { maxSteps } : {}),
      });
      const where = `transcript ${number}`;
      const names = gym.tools().map(({ function: target }) => (target as { name: string }).name);
      expect(names, where).toEqual(listAt(vector, "tools"));
      expect(await gym.reset(), where).toBe(textAt(vector, "reset_observation"));
      for (const step of listAt(vector, "steps") as Dict[]) {
        const got = await gym.step(textAt(step, "action"));
        const reward = step.get("reward");
        const wanted = [step.get("observation"), reward instanceof PyFloat ? reward.value : reward, step.get("terminated")];
        expect([got.observation, got.reward, got.terminated], `${where}: ${textAt(step, "action")}`).toEqual(wanted);
      }
      if (gym.crash === null) {
        expect(gym.reason, where).toBe(vector.get("termination_reason"));
        expect(repr(gym.orchestrator.messages().map(stored)), where).toBe(repr((listAt(vector, "messages") as Dict[]).map(recorded)));
      }
      const requests = listAt(vector, "user_llm_requests") as Dict[];
      expect(user?.requests.length ?? 0, where).toBe(requests.length);
      for (const [i, request] of requests.entries()) {
        const sent = (user?.requests[i] ?? []).map((message) => [message.role, "content" in message ? message.content : null]);
        expect(sent, where).toEqual(listAt(request, "messages_after_system").map((row) => (row as PyValue[]).slice(0, 2)));
        expect(userTools(domain, task)?.map(({ name }) => name) ?? null, where).toEqual(request.get("tools"));
      }
    }
  });
});
