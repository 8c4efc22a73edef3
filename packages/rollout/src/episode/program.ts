import { PlatformError, type StopReason } from "@aenv/contract";
import { hasTokens, isCut, noTokenCount, noTokens } from "../models/tokens.ts";
import type { ProgramAgent } from "../player/agent.ts";
import type { ModelError } from "../player/failure.ts";
import type { EpisodeSandbox } from "../player/instance.ts";
import { LimitReached } from "../player/limits.ts";
import type { RecordedExchange } from "../recorder/model.ts";
import type { RecordingServer, UpstreamModel } from "../recorder/server.ts";
import type { Episode } from "./episode.ts";

export interface ProgramOptions {
  readonly recorder: RecordingServer;
  /** The MCP address of the instance for agents. */
  readonly agentUrl: string;
  readonly model: (UpstreamModel & { readonly name: string }) | null;
  readonly task: { readonly id: string | null; readonly instruction: string | null };
  readonly seed: number;
  /** The sandbox of a program that runs inside. */
  readonly sandbox: EpisodeSandbox | null;
  readonly engine: string | null;
  readonly isIsolated: boolean | null;
}

/**
 * Lets a program play an episode by itself. Its tool calls and its exchanges with the model are recorded on their way; the limits hold
 * for it as for every agent, and the program is stopped when it reaches one or when the episode is done.
 */
export async function playProgram(episode: Episode, agent: ProgramAgent, options: ProgramOptions): Promise<StopReason> {
  const { recorder, agentUrl, model, task, seed, sandbox, engine, isIsolated } = options;
  await agent.prepare?.({ sandbox, engine, isIsolated, signal: episode.signal });
  const stop = new AbortController();
  let running: AbortSignal = stop.signal;
  let reason: StopReason | null = null;
  let failure: unknown = null;
  /** Set if the last tool call was lost. A program may hide that too; one that went on with other calls has coped with it. */
  let lostCall: PlatformError | null = null;
  const asked = new AskedModel(episode, () => running.aborted);
  /** What the agent writes beside tool calls is heard before these are passed on. */
  let heard: Promise<void> = Promise.resolve();
  const fail = (error: unknown) => {
    failure ??= error;
    stop.abort();
  };
  const end = (why: StopReason) => {
    reason ??= why;
    stop.abort();
  };
  const guard = (begin: () => void) => {
    // The program runs until it is stopped; what it does after the end of the episode is no part of it.
    if (reason !== null) throw new Error(`the episode is over (${reason})`);
    try {
      begin();
    } catch (error) {
      if (error instanceof LimitReached) end(error.stopReason);
      throw error;
    }
  };
  const addresses = recorder.record({
    instanceUrl: agentUrl,
    model,
    onToolCall: {
      begin: async () => {
        await heard;
        guard(() => episode.meter.beginToolCall());
      },
      end: (call) => {
        episode.addStep(call);
        lostCall = call.isLost === true ? lost(call.name) : null;
        if (episode.isDone) end("done");
      },
    },
    onExchange: {
      begin: () => guard(() => asked.begin()),
      end: (exchange) => {
        asked.end(exchange);
        const { message } = exchange.written;
        if (episode.isHeard(message)) heard = heard.then(() => episode.hear(message)).catch(fail);
        if (!episode.isCounted(exchange.written)) fail(noTokenCount());
        if (model?.wantsTokens === true && !hasTokens(exchange.written)) fail(noTokens(model.baseUrl));
      },
      fail: (error) => asked.fail(error),
    },
  });
  let ended: StopReason | null = null;
  let thrown: unknown = null;
  try {
    ended = await episode.within<StopReason>(stop.signal, async (signal) => {
      running = signal;
      const { text } = await agent.run({
        task,
        sandbox,
        engine,
        isIsolated,
        report: (facts) => episode.record.report(facts),
        tools: episode.tools,
        seed,
        messages: [...episode.record.messages],
        agentUrl: addresses.agentUrl,
        model:
          model === null
            ? null
            : {
                openaiUrl: addresses.openaiUrl as string,
                anthropicUrl: addresses.anthropicUrl as string,
                apiKey: addresses.modelKey,
                name: model.name,
              },
        signal,
      });
      // A module may return as if nothing had happened.
      signal.throwIfAborted();
      await heard;
      if (text !== null && model === null) episode.addMessage({ role: "assistant", content: text });
      return "done";
    });
  } catch (error) {
    thrown = error;
  } finally {
    // Before the end is judged: what is still under way is recorded now.
    await addresses.close();
  }
  failure ??= asked.failure ?? (ended === "time_limit" ? asked.silence : null) ?? lostCall;
  if (failure !== null) throw failure;
  if (reason !== null) return reason;
  if (ended === null) throw thrown;
  return ended === "done" && asked.isCut ? "max_tokens" : ended;
}

function lost(tool: string): PlatformError {
  return new PlatformError("network.failed", `the sandbox or the server failed before the result of the tool '${tool}' came`);
}

/**
 * A program's exchanges with its model. A program may hide from the episode that the model failed: it may end as if nothing had
 * happened, or with an error of its own. So what counts is the last exchange: if it failed, the endpoint ended the episode.
 */
class AskedModel {
  readonly #episode: Episode;
  readonly #isStopped: () => boolean;
  #failure: ModelError | null = null;
  #silence: ModelError | null = null;
  #hasAnswered = false;
  #isCut = false;

  constructor(episode: Episode, isStopped: () => boolean) {
    this.#episode = episode;
    this.#isStopped = isStopped;
  }

  /** Set if the last exchange failed. */
  get failure(): ModelError | null {
    return this.#failure;
  }

  /** Set if the program was stopped while it waited for the first answer. */
  get silence(): ModelError | null {
    return this.#silence;
  }

  /** Whether the last answer is a text that a limit of tokens cut off. */
  get isCut(): boolean {
    return this.#isCut;
  }

  begin(): void {
    this.#episode.meter.beginTurn();
  }

  end(exchange: RecordedExchange): void {
    this.#hasAnswered = true;
    this.#failure = null;
    this.#isCut = isCut(exchange.written);
    this.#episode.addExchange(exchange);
  }

  fail(error: ModelError | null): void {
    if (error === null) return;
    if (!this.#isStopped()) {
      this.#failure = error;
      this.#episode.meter.returnTurn();
    } else if (!this.#hasAnswered) this.#silence = error;
  }
}
