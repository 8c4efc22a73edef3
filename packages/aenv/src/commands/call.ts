import { formatDuration } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import { type Command, Option } from "commander";
import { type CallOptions, chooseCall } from "../call/call.ts";
import { DEFAULT_URL, resolveTarget, type TargetOptions } from "../call/target.ts";
import { examples } from "../options/examples.ts";
import { duration } from "../options/values.ts";
import { addPlatformOptions } from "../platform/platform.ts";
import { createPrinter } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface Options extends TargetOptions, CallOptions {
  readonly timeout: number;
  readonly json?: boolean;
}

const TIMEOUT_MS = 60_000;

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Calls a tool of a running environment. Options call its functions, reward, health, tasks, reset or snapshot instead.")
    .argument("[name]", "the name of the tool, or of the function with --function")
    .argument("[arguments...]", "key=value; a value that is not valid JSON is text")
    .option("-f, --function", "call a function instead of a tool")
    .option("-r, --reward", "compute the reward; needs no name")
    .option("--health", "check the health; needs no name")
    .option("-l, --list", "list tools, functions and rewards")
    .option("--tasks", "list the tasks; split=NAME lists those of one split")
    .option("--reset", "start a new episode and print its task and observation; takes task=ID and seed=NUMBER")
    .option("--snapshot", "print the state as JSON")
    .option("-a, --args <json>", "arguments as one JSON object; key=value overrides it")
    .option("--role <role>", "the role that calls the tool, in an environment with roles")
    .option("-u, --url <url>", `the environment's address; $DUMMY_INSTANCE_IP or ${DEFAULT_URL} if not given`)
    .option("-i, --instance <id>", "one of its instances; the first if not given")
    .option("-s, --service <name>", "a service of the server, instead of --url")
    .addOption(
      new Option("-t, --timeout <duration>", "timeout of the call, e.g. 90s or 5m")
        .argParser(duration)
        .default(TIMEOUT_MS, formatDuration(TIMEOUT_MS)),
    )
    .option("--json", "print the whole answer as JSON");
  addPlatformOptions(command)
    .addHelpText(
      "after",
      examples(
        "aenv call --list",
        "aenv call add n=3",
        `aenv call search query="red tea" --args '{"limit": 5}'`,
        "aenv call move column=4 --role white",
        "aenv call --function clear",
        "aenv call --reward goal=3",
        "aenv call --reset task=refund-1 seed=7",
        "aenv call --health --url http://127.0.0.1:9000",
        "aenv call --list --service tools",
      ),
    )
    .action((name: string | undefined, rest: string[], options: Options) =>
      call(name === undefined ? [] : [name, ...rest], options, terminal),
    );
}

async function call(words: readonly string[], options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const chosen = chooseCall(words, options, printer);
  const { url, apiKey } = await resolveTarget(options, terminal);
  // The call itself shows at once whether the environment is there.
  const settings = { instanceUrl: url, apiKey, timeoutMs: options.timeout, skipHealthCheck: true, maxRetries: 1 };
  // The name is unknown here, so messages use the address.
  const name = url.replace(/^\w+:\/\//, "").replace(/\/.*$/, "") || "environment";
  const print = await withSpinner(terminal, `Calling ${url}`, () => Environment.use(name, settings, chosen));
  print();
}
