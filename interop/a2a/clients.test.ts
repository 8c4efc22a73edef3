import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { InstanceRecord } from "@aenv/contract";
import { a2aOldPythonPath, a2aPythonPath, describeNeeding } from "@aenv/testing";
import { type Platform, projects, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const LONG = { timeout: 120_000 };
const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", PYTHONWARNINGS: "ignore" };

async function runPython(python: string, folder: string, args: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout } = await promisify(execFile)(python, [`${import.meta.dirname}/../${folder}/use_client.py`, ...args], {
    env,
    timeout: 50_000,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

/** What clients get for a message with this id, whatever their language. */
const streamed = { kinds: ["task", "status_update", "artifact_update", "status_update"], text: "Streamed text." };

describeNeeding("a2a", "clients of A2A", () => {
  describe.each([{ workers: 0 }, { workers: 2 }])("through a gateway with $workers workers", ({ workers }) => {
    let platform: Platform;
    let instance: InstanceRecord;
    let base = "";
    beforeAll(async () => {
      platform = await startPlatform({ flags: workers === 0 ? {} : { workers } });
      instance = await platform.create(await publish(platform, projects.conformanceAgent, { isolation: "shared" }));
      base = String(instance.a2a_url);
      expect(base).toMatch(/\/agent\/[^/]+\/$/);
    }, 180_000);
    afterAll(() => platform?.close());

    it.each(["JSONRPC", "HTTP+JSON"])("the newest client of Python finishes a streamed task over %s", LONG, async (binding) => {
      expect(await runPython(a2aPythonPath, "a2a", [base, binding, "yes", "tck-stream-001"])).toEqual({
        card: "conformance-agent-shared",
        events: streamed.kinds,
        state: "TASK_STATE_COMPLETED",
        texts: [streamed.text],
        listed: true,
        refused: "TaskNotCancelableError",
      });
      const blocking = await runPython(a2aPythonPath, "a2a", [base, binding, "no", "tck-artifact-text"]);
      expect(blocking).toMatchObject({ events: ["task"], texts: ["Generated text."] });
      expect(await runPython(a2aPythonPath, "a2a", [base, binding, "yes", "tck-message-response"])).toMatchObject({ events: ["message"] });
    });

    it(
      "the last client of Python for version 0.3 finishes a streamed task, with and without a slash at the end of the link",
      LONG,
      async () => {
        for (const link of [base, base.slice(0, -1)]) {
          expect(await runPython(a2aOldPythonPath, "a2a-old", [link, "yes", "tck-stream-001"])).toEqual({
            card: "conformance-agent-shared",
            events: ["task", "status-update", "artifact-update", "status-update"],
            state: "completed",
            texts: [streamed.text],
          });
        }
        expect(await runPython(a2aOldPythonPath, "a2a-old", [base, "no", "tck-message-response"])).toMatchObject({ events: ["message"] });
      },
    );

    it("the client of JavaScript finishes a streamed task over both bindings", LONG, async () => {
      const { ClientFactory } = await import("@a2a-js/sdk/client");
      const client = await new ClientFactory().createFromUrl(base);
      const request = (messageId: string) => ({
        tenant: "",
        configuration: undefined,
        metadata: undefined,
        message: {
          messageId,
          contextId: "",
          taskId: "",
          role: 1,
          parts: [{ content: { $case: "text" as const, value: "hello" }, mediaType: "", filename: "", metadata: undefined }],
          metadata: undefined,
          extensions: [],
          referenceTaskIds: [],
        },
      });
      const kinds: unknown[] = [];
      for await (const event of client.sendMessageStream(request("tck-stream-001"))) kinds.push(event.payload?.$case);
      expect(kinds).toEqual(["task", "statusUpdate", "artifactUpdate", "statusUpdate"]);
      expect(await client.sendMessage(request("tck-artifact-text"))).toMatchObject({
        artifacts: [{ parts: [{ content: { $case: "text", value: "Generated text." } }] }],
      });
    });
  });
});
