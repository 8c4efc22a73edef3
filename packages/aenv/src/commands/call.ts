import { type ContentBlock, instancePrefix, isObject } from "@aenv/contract";
import { Environment, type ToolResult } from "@aenv/sdk";
import type { Command } from "commander";
import { fetchOffer, offerTable } from "../catalogue.ts";
import { Failure } from "../failure.ts";
import { examples } from "../help.ts";
import { duration } from "../option.ts";
import { during } from "../spinner.ts";
import { type Terminal, type Voice, voiceOf } from "../terminal.ts";

interface Options {
  readonly function?: boolean;
  readonly reward?: boolean;
  readonly health?: boolean;
  readonly list?: boolean;
  readonly args?: string;
  readonly url?: string;
  readonly instance?: string;
  readonly timeout: number;
  readonly json?: boolean;
}

const USUAL_URL = "http://127.0.0.1:8081";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Calls a tool of a running environment, or with an option its functions, reward or health.")
    .usage("[options] TARGET [key=value ...]")
    .argument("[words...]", "the name, then arguments: each value is JSON if it is JSON, else text")
    .option("-f, --function", "call a function instead of a tool")
    .option("-r, --reward", "ask for the reward; needs no name")
    .option("--health", "ask for the health; needs no name")
    .option("-l, --list", "list tools, functions and rewards")
    .option("-a, --args <json>", "arguments as one JSON object; key=value goes over it")
    .option("-u, --url <url>", `where it runs; $DUMMY_INSTANCE_IP or ${USUAL_URL} if not given`)
    .option("-i, --instance <id>", "one of its instances; the first if not given")
    .option("-t, --timeout <duration>", "how long it may take, e.g. 90s or 5m", duration, 60_000)
    .option("--json", "the whole answer as JSON")
    .addHelpText(
      "after",
      examples(
        "aenv call --list",
        "aenv call add n=3",
        `aenv call search query="red tea" --args '{"limit": 5}'`,
        "aenv call --function clear",
        "aenv call --reward goal=3",
        "aenv call --health --url http://127.0.0.1:9000",
      ),
    )
    .action((words: string[], options: Options) => call(words, options, terminal));
}

async function call(words: readonly string[], options: Options, terminal: Terminal): Promise<void> {
  const voice = voiceOf(terminal, options.json === true);
  const work = chooseWork(words, options, voice);
  const base = (options.url ?? terminal.env.DUMMY_INSTANCE_IP ?? USUAL_URL).replace(/\/+$/, "");
  const instanceUrl = options.instance === undefined ? base : `${base}${instancePrefix(options.instance)}`;
  // Whether it is there is what the call itself will show, at once.
  const settings = { instanceUrl, timeoutMs: options.timeout, skipHealthCheck: true, maxRetries: 1 };
  // Its name is not known here, so in messages it goes by where it is.
  const name = base.replace(/^\w+:\/\//, "").replace(/\/.*$/, "") || "environment";
  const tell = await during(terminal, `Calling ${base}`, () => Environment.use(name, settings, work));
  tell();
}

type Work = (environment: Environment) => Promise<() => void>;

/** What to ask, and how to tell the answer. */
function chooseWork(words: readonly string[], options: Options, voice: Voice): Work {
  const asked = (["function", "reward", "health", "list"] as const).filter((name) => options[name]);
  if (asked.length > 1) throw new Failure(`--${asked[0]} and --${asked[1]} exclude each other`, { exit: "usage" });
  const [kind = "tool"] = asked;
  switch (kind) {
    case "list":
      return async (environment) => {
        const offer = await fetchOffer(environment);
        return () => (voice.isJson ? voice.data(offer) : voice.say(offerTable(offer, voice.people)));
      };
    case "reward":
      return async (environment) => {
        const reward = await environment.callReward(parseArguments(words, options.args));
        return () => tellValue(reward, voice);
      };
    case "health":
      return async (environment) => {
        const health = await environment.checkHealth(parseArguments(words, options.args));
        return () => tellHealth(health, voice);
      };
    case "function":
    case "tool": {
      const [name, ...rest] = words;
      if (name === undefined || name.includes("=")) {
        throw new Failure(`which ${kind}? Its name comes first`, { exit: "usage", hint: "See what is there with: aenv call --list" });
      }
      const args = parseArguments(rest, options.args);
      return async (environment) => {
        if (kind === "tool") {
          const result = await environment.callTool(name, args);
          return () => tellResult(result, voice);
        }
        const value = await environment.callFunction(name, args);
        return () => tellValue(value, voice);
      };
    }
  }
}

export function parseArguments(words: readonly string[], json: string | undefined): Record<string, unknown> {
  const args: Record<string, unknown> = json === undefined ? {} : parseObject(json);
  for (const word of words) {
    const at = word.indexOf("=");
    if (at < 1) throw new Failure(`'${word}' is not key=value`, { exit: "usage", hint: "Write arguments as: n=3 note=hello" });
    args[word.slice(0, at)] = parseValue(word.slice(at + 1));
  }
  return args;
}

function parseObject(json: string): Record<string, unknown> {
  const value = parseValue(json);
  if (isObject(value)) return { ...value };
  throw new Failure(`--args is not a JSON object: ${json}`, { exit: "usage", hint: `Write it as: --args '{"n": 3}'` });
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function tellResult(result: ToolResult, voice: Voice): void {
  const { content, isError, structuredContent } = result;
  voice.data({ content, isError, ...(structuredContent !== undefined && { structuredContent }) });
  const text = content.map(blockText).join("\n");
  if (isError) throw voice.isJson ? new Failure([]) : new Failure(text || "the tool failed without a word", { code: "tool.failed" });
  if (!voice.isJson && text !== "") voice.say(text);
}

function tellValue(value: unknown, voice: Voice): void {
  if (voice.isJson) voice.data(value ?? null);
  else voice.say(typeof value === "string" ? value : JSON.stringify(value ?? null, null, 2));
}

function tellHealth(health: Record<string, unknown>, voice: Voice): void {
  tellValue(health, voice);
  const status = isObject(health.data) ? health.data.status : undefined;
  if (status !== "healthy" && status !== "success") throw new Failure([]);
}

/** Text as it is; of anything else, what it is and how much. */
function blockText(block: ContentBlock): string {
  if (typeof block.text === "string") return block.text;
  const size = typeof block.data === "string" ? `, ${Math.floor((block.data.length * 3) / 4)} bytes` : "";
  return `[${block.type}${typeof block.mimeType === "string" ? ` ${block.mimeType}` : ""}${size}]`;
}
