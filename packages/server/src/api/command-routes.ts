import { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { commandRoutes } from "@aenv/contract";
import type { ListedProcess } from "@aenv/sandbox";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { commandFields } from "../commands/command-fields.ts";
import type { Commands, FollowedCommand } from "../commands/commands.ts";
import type { ShownText } from "../config/shown-text.ts";
import { finished, outputOf } from "../sandboxes/command-output.ts";
import { endingFields } from "../sandboxes/ending-fields.ts";
import * as answers from "./answers.ts";
import { toClientError } from "./failure.ts";
import { type ApiRequest, type ApiRoute, bodyLimits, endpointOf, enveloped, route } from "./route.ts";

export interface CommandRouteOptions {
  readonly commands: Commands;
  readonly shown: ShownText;
}

const id = z.string().min(1).max(128);
const encoding = z.enum(["text", "base64"]).default("text").describe("how output is written: text replaces what is not UTF-8");
const MEBIBYTE = 1_024 ** 2;
/** An idle stream sends a line this often, so that proxies keep the connection open. */
const QUIET_MS = 15_000;

const execBody = z.strictObject({
  ...commandFields,
  stdin: z.string().optional().describe("the input, as text"),
  stdin_base64: z.base64().optional().describe("the input, as bytes"),
  wait: z.boolean().default(false).describe("answer once, when the command has ended"),
  encoding,
  max_output_bytes: z
    .int()
    .min(0)
    .max(16 * MEBIBYTE)
    .default(MEBIBYTE)
    .describe("with wait: the most bytes of each output; of more, the beginning and the end are returned"),
  end_with_client: z.boolean().default(false).describe("end the command when the client disconnects"),
});

const ofCommand = z.object({ id, command: z.coerce.number().int().min(1) });

type Encoding = z.infer<typeof encoding>;
type Ask = Pick<ApiRequest<unknown, unknown, unknown>, "request" | "reply" | "signal">;

/** Commands in the sandbox of an instance. They are for its owner; an agent has no access to the control port. */
export function commandApi({ commands, shown }: CommandRouteOptions): ApiRoute[] {
  const common = { tag: "sandboxes", roles: ["trainer", "publisher"] } as const;
  return [
    route({
      ...common,
      ...endpointOf(commandRoutes.exec),
      summary: "Run a command in the sandbox: events as lines of JSON, or with `wait` one answer at its end",
      answer: { ...enveloped(answers.commands.finished), alsoType: "application/x-ndjson" },
      audited: { event: "command.started", of: (_, { params }) => [params.id] },
      params: z.object({ id }),
      body: execBody,
      maxBodyBytes: bodyLimits.snapshot,
      isRaw: true,
      handle: async (ask) => {
        const { body, params, caller, signal, reply } = ask;
        const input = body.stdin_base64 === undefined ? body.stdin : Buffer.from(body.stdin_base64, "base64");
        const spec = { ...body, timeoutMs: body.timeout_ms, hasInput: input !== undefined };
        const command = await commands.start(params.id, spec, caller, signal);
        if (input !== undefined) command.process.stdin.end(input);
        const leave = body.end_with_client ? command.kill : command.detach;
        if (!body.wait) return streamEvents(command, body.encoding, leave, ask, shown);
        const { stdout, stderr, process, ...ending } = await untilGone(finished(command.process, body.max_output_bytes), signal, leave);
        const data = {
          process,
          ...endingFields(ending),
          stdout: stdout.toString(names[body.encoding]),
          stderr: stderr.toString(names[body.encoding]),
        };
        return reply.send({ success: true, code: 0, message: "", data });
      },
    }),
    route({
      ...common,
      ...endpointOf(commandRoutes.listCommands),
      summary: "List the commands that run, and those whose end no client has read",
      answer: answers.commands.list,
      params: z.object({ id }),
      handle: async ({ params, caller, signal }) => (await commands.list(params.id, caller, signal)).map(listedFields),
    }),
    route({
      ...common,
      ...endpointOf(commandRoutes.attachCommand),
      summary: "Follow a command again: its output that no client has taken, and its end. Another client that follows it loses it",
      answer: { type: "application/x-ndjson" },
      audited: { event: "command.followed", of: (_, { params }) => [`${params.id}:${params.command}`] },
      params: ofCommand,
      query: z.object({ encoding }),
      isRaw: true,
      handle: async (ask) => {
        const command = await commands.attach(ask.params.id, ask.params.command, ask.caller, ask.signal);
        return streamEvents(command, ask.query.encoding, command.detach, ask, shown);
      },
    }),
    route({
      ...common,
      ...endpointOf(commandRoutes.signalCommand),
      summary: "Send a signal to all processes of a command's group",
      answer: answers.done,
      audited: { event: "command.signalled", of: (_, { params }) => [`${params.id}:${params.command}`] },
      params: ofCommand,
      body: z.strictObject({ signal: z.string().regex(/^SIG[A-Z0-9]+$/, "must be a name such as SIGTERM") }),
      maxBodyBytes: bodyLimits.fields,
      handle: async ({ params, body, caller, signal }) => {
        await commands.signal(params.id, params.command, body.signal as NodeJS.Signals, caller, signal);
        return true;
      },
    }),
  ];
}

const names = { text: "utf8", base64: "base64" } as const satisfies Record<Encoding, BufferEncoding>;

function listedFields({ id: process, pid, argv, startedMs, ending }: ListedProcess) {
  return { process, pid, argv, started_at: new Date(startedMs).toISOString(), ended: ending === null ? null : endingFields(ending) };
}

function streamEvents(command: FollowedCommand, encoding: Encoding, leave: () => void, ask: Ask, shown: ShownText): FastifyReply {
  ask.signal.addEventListener("abort", leave);
  if (ask.signal.aborted) leave();
  const lines = Readable.from(eventLines(command, encoding, ask, shown), { objectMode: false });
  return ask.reply.type("application/x-ndjson").header("cache-control", "no-cache, no-transform").send(lines);
}

async function* eventLines(command: FollowedCommand, encoding: Encoding, ask: Ask, shown: ShownText): AsyncGenerator<string> {
  const line = (event: object) => `${JSON.stringify(event)}\n`;
  const { process } = command;
  yield line({ type: "started", process: process.id, pid: process.pid });
  // A character may be divided between two parts of the output.
  const decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
  try {
    for await (const part of outputOf(process, QUIET_MS)) {
      if (part === null) yield line({ type: "ping" });
      else if (!("channel" in part)) {
        for (const type of ["stdout", "stderr"] as const) {
          const rest = decoders[type].end();
          if (rest !== "") yield line({ type, data: rest });
        }
        yield line({ type: "exit", process: process.id, ...endingFields(part) });
      } else if (encoding === "base64") yield line({ type: part.channel, data: part.data.toString("base64") });
      else {
        const data = decoders[part.channel].write(part.data);
        if (data !== "") yield line({ type: part.channel, data });
      }
    }
  } catch (error) {
    if (ask.signal.aborted) return;
    const { code, message, retryable } = toClientError(error, ask.request, shown);
    yield line({ type: "error", code, message, retryable });
  }
}

/** Leaves the command alone when the client is gone. */
async function untilGone<T>(work: Promise<T>, signal: AbortSignal, leave: () => void): Promise<T> {
  signal.addEventListener("abort", leave);
  if (signal.aborted) leave();
  try {
    return await work;
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", leave);
  }
}
