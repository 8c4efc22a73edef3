import type { StopReason } from "@aenv/contract";
import type { ProgramAgent } from "../agents/agent.ts";
import { hasTokens, noTokens } from "../models/tokens.ts";
import type { RecordingServer, UpstreamModel } from "../recorder/server.ts";
import type { Episode } from "./episode.ts";
import type { EpisodeSandbox } from "./instance.ts";
import { LimitReached } from "./limits.ts";

export interface ProgramOptions {
  readonly recorder: RecordingServer;
  /** The MCP address of the instance for agents. */
  readonly agentUrl: string;
  readonly model: (UpstreamModel & { readonly name: string }) | null;
  readonly task: { readonly id: string | null; readonly instruction: string | null };
  readonly seed: number;
  /** For programs that run in it. */
  readonly sandbox: EpisodeSandbox | null;
  readonly engine: string | null;
}

/**
 * Lets a program play an episode by itself. Its tool calls and its exchanges with the model are recorded on their way; the limits hold
 * for it as for every agent, and the program is stopped when it reaches one or when the episode is done.
 */
export async function playProgram(episode: Episode, agent: ProgramAgent, options: ProgramOptions): Promise<StopReason> {
  const { recorder, agentUrl, model, task, seed, sandbox, engine } = options;
  await agent.prepare?.({ sandbox, engine, signal: episode.signal });
  const stop = new AbortController();
  let reason: StopReason | null = null;
  let failure: unknown = null;
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
        if (episode.isDone) end("done");
      },
    },
    onExchange: {
      begin: () => guard(() => episode.meter.beginTurn()),
      end: (exchange) => {
        episode.addExchange(exchange);
        const { message } = exchange.written;
        if (episode.isHeard(message)) heard = heard.then(() => episode.hear(message)).catch(fail);
        if (model?.wantsTokens === true && !hasTokens(exchange.written)) fail(noTokens(model.baseUrl));
      },
    },
  });
  try {
    return await episode.within(stop.signal, async (signal) => {
      const { text } = await agent.run({
        task,
        sandbox,
        engine,
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
      await heard;
      if (failure !== null) throw failure;
      if (text !== null && model === null) episode.addMessage({ role: "assistant", content: text });
      return reason ?? "done";
    });
  } catch (error) {
    if (failure !== null) throw failure;
    if (reason !== null) return reason;
    throw error;
  } finally {
    await addresses.close();
  }
}
