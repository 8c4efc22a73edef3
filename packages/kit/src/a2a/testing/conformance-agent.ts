import { setTimeout as delay } from "node:timers/promises";
import { agentEnvironment } from "../../agent/agent-environment.ts";
import type { AgentEvent, Part } from "../../definition/agent.ts";

const text = (words: string): readonly Part[] => [{ text: words }];
const artifact = (part: Part, more: object = {}): AgentEvent => ({
  kind: "artifact",
  artifact: { name: "result", parts: [part] },
  ...more,
});

/** What the agent does with a message whose id begins so. The first match counts. */
const behaviors: readonly (readonly [prefix: string, events: readonly AgentEvent[], pauseMs?: number])[] = [
  ["tck-complete-task", [{ kind: "answer", parts: text("Done.") }]],
  ["tck-artifact-text", [artifact({ text: "Generated text." })]],
  ["tck-artifact-file-url", [artifact({ url: "https://example.com/output.txt", filename: "output.txt", mediaType: "text/plain" })]],
  ["tck-artifact-file", [artifact({ raw: "ZmlsZQ==", filename: "output.txt", mediaType: "text/plain" })]],
  ["tck-artifact-data", [artifact({ data: { key: "value", count: 42 } })]],
  ["tck-input-required", [{ kind: "question", parts: text("What next?") }]],
  ["tck-reject-task", [{ kind: "refusal", parts: text("No.") }]],
  ["tck-stream-002", []],
  [
    "tck-stream-artifact-chunked",
    [
      { kind: "artifact", artifact: { artifactId: "chunked", parts: text("one ") } },
      { kind: "artifact", artifact: { artifactId: "chunked", parts: text("two") }, append: true, last: true },
    ],
  ],
  ["tck-stream-artifact-file", [artifact({ raw: "ZmlsZQ==", filename: "output.txt", mediaType: "text/plain" })]],
  ["tck-stream-", [artifact({ text: "Streamed text." })]],
  ["test-resubscribe-message-id", [{ kind: "answer", parts: text("Done.") }], 4_000],
];

/**
 * The agent that the public conformance kit of A2A (`a2aproject/a2a-tck`, branch `1.0-dev`) wants to test: what it does depends on the id
 * of the message. A server under test serves it with `serve`, or from a platform.
 */
export const conformanceAgent = agentEnvironment({
  description: "Does what the conformance kit expects of a message with this id.",
  skills: [{ id: "conformance", description: "Answers the messages of the conformance kit.", tags: ["test"] }],
  agent: {
    begin: () => ({ turns: 0 }),
    directAnswer: (_, messageId) => (messageId.startsWith("tck-message-response") ? text("A direct answer.") : null),
    async *turn(input, memory, { message, signal }) {
      memory.turns++;
      const [, events, pauseMs = 0] = behaviors.find(([prefix]) => message.messageId.startsWith(prefix)) ?? ["", []];
      if (pauseMs > 0) await delay(pauseMs, undefined, { signal });
      if (events.length > 0 || message.messageId.startsWith("tck-")) return yield* events;
      yield { kind: "answer", parts: [{ text: `turn ${memory.turns}` }, ...input] };
    },
  },
});
