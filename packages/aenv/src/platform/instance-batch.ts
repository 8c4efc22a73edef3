import { type BatchItem, Environment, type EnvironmentBatch } from "@aenv/sdk";
import { type FormatOptions, printerFor } from "../options/format.ts";
import { Failure, toFailure } from "../terminal/failure.ts";
import { countText, statusText, table } from "../terminal/table.ts";
import type { Output, Terminal } from "../terminal/terminal.ts";
import { environmentOptions, type StartOptions, stoppedBefore } from "./instance-start.ts";
import { callServer, nextCommand, type Platform, type PlatformOptions } from "./platform.ts";

interface BatchOptions extends PlatformOptions, FormatOptions, StartOptions {
  readonly count: number;
  readonly keepAlive?: boolean;
  readonly signal: AbortSignal;
}

/** One line of the output: a running instance, or the error of one that did not start. */
interface Started {
  readonly id: string | null;
  readonly status: string;
  readonly agentUrl: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Starts several instances with one request. When `untilDone` resolves they are released, unless they are kept alive. */
export async function createMany(
  ref: string,
  options: BatchOptions,
  platform: Platform,
  terminal: Terminal,
  untilDone: () => Promise<void>,
): Promise<void> {
  const printer = printerFor(terminal, options);
  const { colors } = printer.output;
  const batch = await start(ref, options, platform, terminal);
  const started = await Promise.all(batch.items.map(startedOf));
  printer.json(started);
  if (!printer.isJson) printer.print(startedTable(started, printer.output));
  for (const text of errorLines(started)) printer.print(text);
  const ids = started.flatMap(({ id }) => id ?? []);
  const failed = started.length - ids.length;
  if (ids.length > 0 && options.keepAlive) {
    printer.print(`  ${colors.dim("Delete them with:")} ${nextCommand(`aenv instance delete ${ids.join(" ")}`, options, colors)}`);
  } else if (ids.length > 0) {
    printer.print(colors.dim("Ctrl-C releases them."));
    await untilDone();
    await callServer(terminal, "Releasing them", () => batch.release());
    printer.print(`${colors.green("✔")} ${countText(ids.length, "instance")} released`);
  }
  if (failed === 0) return;
  if (printer.isJson) throw new Failure([]);
  throw new Failure(`${failed} of ${countText(started.length, "instance")} did not start`, { code: "instance.start_failed" });
}

async function start(ref: string, options: BatchOptions, platform: Platform, terminal: Terminal): Promise<EnvironmentBatch<Environment>> {
  const { count, signal } = options;
  const wanted = { ...environmentOptions(options, platform, terminal), signal };
  try {
    return await callServer(terminal, `Starting ${count} of ${ref}`, () => Environment.createMany(ref, count, wanted));
  } catch (error) {
    throw signal.aborted ? stoppedBefore(`${count} of ${ref}`) : error;
  }
}

async function startedOf({ environment, error }: BatchItem<Environment>): Promise<Started> {
  if (environment === null) {
    const { code, message } = toFailure(error);
    return { id: null, status: "Failed", agentUrl: null, error: { code, message } };
  }
  const { instanceId: id, status } = await environment.getEnvInfo();
  return { id, status, agentUrl: await environment.agentUrl().catch(() => null), error: null };
}

function startedTable(started: readonly Started[], output: Output): string {
  const rows = started.map(({ id, status, agentUrl, error }, at) => [
    String(at + 1),
    id ?? "",
    statusText(status, output.colors),
    agentUrl ?? error?.code ?? "",
  ]);
  return table(["", "instance", "status", "agent URL, or error"], rows, output);
}

/** Each message once and whole, with the numbers of the instances that it is about. */
export function errorLines(started: readonly Pick<Started, "error">[]): string[] {
  const numbers = new Map<string, number[]>();
  for (const [at, { error }] of started.entries()) {
    if (error !== null) numbers.set(error.message, [...(numbers.get(error.message) ?? []), at + 1]);
  }
  return [...numbers].map(([message, of]) => `  ${of.join(", ")}: ${message}`);
}
