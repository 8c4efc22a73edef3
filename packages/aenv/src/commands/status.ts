import { setTimeout } from "node:timers/promises";
import { messageOf } from "@aenv/contract";
import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { addOutputOption, type FormatOptions, printerFor } from "../options/format.ts";
import { duration } from "../options/values.ts";
import { addPlatformOptions, callServer, openPlatform, type Platform, type PlatformOptions } from "../platform/platform.ts";
import { readStatus, type ServerStatus } from "../platform/server-status.ts";
import { statusPage } from "../platform/status-view.ts";
import { Failure } from "../terminal/failure.ts";
import { fit } from "../terminal/fit.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options extends PlatformOptions, FormatOptions {
  readonly watch?: boolean;
  readonly interval?: number;
}

const INTERVAL_MS = 2_000;
const now = () => new Date();

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Shows what a server does: instances by environment and owner, queued starts, pools, calls, rollouts, and the instances that failed in the last ten minutes. Needs an administrator's token. Of several servers on one store, the numbers of queues, pools, calls and rollouts are those of the one that answers.",
    )
    .option("-w, --watch", "refresh the page until Ctrl-C, on a terminal")
    .option("--interval <duration>", "how often --watch refreshes; 2s if not given", duration);
  addPlatformOptions(addOutputOption(command))
    .addHelpText("after", examples("aenv status", "aenv status --watch --interval 5s", "aenv status --json"))
    .action((options: Options) => show(options, terminal));
}

async function show(options: Options, terminal: Terminal): Promise<void> {
  const printer = printerFor(terminal, options);
  const { watch: isWatched = false, interval = INTERVAL_MS } = options;
  if (isWatched && (printer.isJson || !terminal.stdout.isTty))
    throw new Failure("--watch needs a terminal, and prints no JSON", {
      exit: "usage",
      hint: "Run it again and again with: aenv status --json",
    });
  const platform = openPlatform(options, terminal, { timeoutMs: 10_000 });
  const status = await callServer(terminal, `Asking ${platform.url}`, () => readStatus(platform, now));
  if (isWatched) return watch(platform, status, interval, terminal);
  printer.json(status);
  if (!printer.isJson) printer.print(statusPage(status, null, printer.output));
}

/** Shows the page on the terminal's second screen, so that the first one is as before afterwards. */
async function watch(platform: Platform, first: ServerStatus, intervalMs: number, terminal: Terminal): Promise<void> {
  const { stdout, input } = terminal;
  const stop = terminal.stopSignal();
  const draw = (page: string) => {
    const lines = page.split("\n").slice(0, (input?.size().rows ?? 24) - 1);
    stdout.write(`\x1b[H${lines.map((line) => `${fit(line, stdout.columns)}\x1b[K`).join("\n")}\x1b[J`);
  };
  stdout.write("\x1b[?1049h\x1b[?25l");
  try {
    let [before, status]: [ServerStatus | null, ServerStatus] = [null, first];
    let problem = "";
    while (!stop.aborted) {
      draw(`${statusPage(status, before, stdout)}\n${problem}`);
      await setTimeout(intervalMs, undefined, { signal: stop }).catch(() => {});
      if (stop.aborted) return;
      try {
        const next = await readStatus(platform, now);
        [before, status, problem] = [status, next, ""];
      } catch (error) {
        // A server that restarts answers again soon.
        problem = stdout.colors.red(`  ${messageOf(error)}; trying again`);
      }
    }
  } finally {
    stdout.write("\x1b[?25h\x1b[?1049l");
  }
}
