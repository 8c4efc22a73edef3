import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { AgentContext, AgentEvent, AgentPart, Part } from "../definition/agent.ts";
import { expandVariables } from "../outgoing/variables.ts";
import { A2aClient, A2aError } from "./client.ts";
import type { RemoteEvent } from "./events.ts";

export interface RemoteAgentOptions {
  /** Headers of each request. `${NAME}` in a value is that variable of the instance, such as a secret. They are sent to the host of the URL only. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Private and loopback hosts that may be called, such as `10.0.0.5` or `127.0.0.1:8080`. None by default, whatever a card says. */
  readonly allowPrivate?: readonly string[];
  /** Timeout for one turn, ten minutes by default. The task of the agent is then cancelled. */
  readonly turnTimeoutMs?: number;
}

/** What is kept of a conversation; the agent has the rest. */
export interface RemoteMemory {
  contextId: string | null;
  /** A task that waits for the next message. */
  taskId: string | null;
}

const TURN_TIMEOUT_MS = 10 * 60_000;
const CANCEL_MS = 5_000;

/**
 * An agent that is reached by a URL and speaks A2A, 1.0 or 0.3. Its memory is elsewhere, so an episode with a conversation is neither stored nor
 * forked. An agent that cannot be reached makes the episode unscored.
 *
 * @example
 * export default agentEnvironment({ description: "The agent of the shop.", agent: remoteAgent("https://agents.example.com/shop/") });
 */
export function remoteAgent(url: string, options: RemoteAgentOptions = {}): AgentPart<RemoteMemory> {
  const { headers = {}, allowPrivate, turnTimeoutMs = TURN_TIMEOUT_MS } = options;
  const address = new URL(url);
  return {
    notStored: "the memory of a remote agent is elsewhere, so its conversations can be neither stored nor forked",
    begin: () => ({ contextId: null, taskId: null }),
    turn: (input, memory, context) =>
      takeTurn(input, memory, context, turnTimeoutMs, (signal) =>
        A2aClient.open(address, expandVariables(headers, context.variables, "the remote agent"), { allowPrivate }, signal),
      ),
  };
}

async function* takeTurn(
  input: readonly Part[],
  memory: RemoteMemory,
  { signal }: AgentContext,
  timeoutMs: number,
  open: (signal: AbortSignal) => Promise<A2aClient>,
): AsyncGenerator<AgentEvent, void, undefined> {
  const late = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, late]);
  let client: A2aClient | null = null;
  let taskId = memory.taskId;
  try {
    client = await open(either);
    let results: readonly Part[] = [];
    for await (const event of client.converse({ parts: input, ...memory }, either)) {
      if (event.kind === "message") {
        memory.contextId = event.contextId ?? memory.contextId;
        memory.taskId = null;
        yield { kind: "answer", parts: event.parts };
        return;
      }
      if (event.kind === "task") {
        taskId = event.task.id;
        memory.contextId = event.task.contextId ?? memory.contextId;
      } else if (event.kind === "artifact") {
        const { artifact, append, last } = event;
        results = append ? [...results, ...artifact.parts] : artifact.parts;
        yield { kind: "artifact", artifact, append, last };
      } else {
        taskId ??= event.taskId;
        const isWaiting = event.state === "input-required" || event.state === "auth-required";
        memory.taskId = isWaiting ? taskId : null;
        yield* toEvents(event, results);
      }
    }
  } catch (error) {
    const signalOfCancel = AbortSignal.timeout(CANCEL_MS);
    if (either.aborted && taskId !== null) void client?.cancel(taskId, signalOfCancel);
    if (signal.aborted) throw signal.reason;
    if (error instanceof RemoteFailure || isPlatformError(error)) throw error;
    const why = late.aborted ? `it did not finish its turn within ${timeoutMs} ms` : messageOf(error);
    // The agent has refused the request: this is not an answer either.
    const retryable = !(error instanceof A2aError);
    throw new PlatformError("model.failed", `the remote agent could not be asked: ${why}`, { cause: error, retryable });
  }
}

/** The agent itself says that it has failed. */
class RemoteFailure extends Error {
  override readonly name = "RemoteFailure";
}

function* toEvents({ state, said }: Extract<RemoteEvent, { kind: "status" }>, results: readonly Part[]): Generator<AgentEvent> {
  switch (state) {
    case "submitted":
    case "working":
      if (said !== null) yield { kind: "message", parts: said };
      return;
    case "input-required":
    case "auth-required":
      yield { kind: "question", parts: said ?? [{ text: `The agent waits: ${state}.` }] };
      return;
    case "completed":
      // An agent may give its results as artifacts only.
      yield { kind: "answer", parts: said ?? results };
      return;
    case "rejected":
      yield { kind: "refusal", parts: said ?? [{ text: "The agent rejected the task." }] };
      return;
    case "failed":
    case "canceled":
      throw new RemoteFailure(`the remote agent's task is ${state}: ${textOf(said)}`);
  }
}

function textOf(parts: readonly Part[] | null): string {
  const texts = (parts ?? []).map((part) => ("text" in part ? part.text : "")).join(" ");
  return texts.trim().slice(0, 2_000) || "it does not say why";
}
