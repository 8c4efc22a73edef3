import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { messageOf } from "@aenv/contract";
import { type Prices, prices } from "@aenv/rollout";
import type { Command } from "commander";
import * as z from "zod";
import { number } from "../options/values.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface PriceOptions {
  readonly priceInput?: number;
  readonly priceOutput?: number;
  readonly priceCached?: number;
  readonly prices?: string;
}

const MOST = 1_000_000;
const EXAMPLE = '{ "MODEL": { "input": 2, "output": 8, "cached": 0.5 } }';

export function addPriceOptions(command: Command): Command {
  return command
    .option("--price-input <price>", "the price of a million input tokens; with --price-output the run shows its cost", number(0, MOST))
    .option("--price-output <price>", "the price of a million output tokens, reasoning included", number(0, MOST))
    .option("--price-cached <price>", "the price of a million cached input tokens; the price of input if not given", number(0, MOST))
    .option("--prices <file>", `a JSON file with the prices of models by name: ${EXAMPLE}`);
}

/** The prices of the run's model; null if none are given. */
export function pricesOf(options: PriceOptions, model: string | null, terminal: Terminal): Prices | null {
  const { priceInput: input, priceOutput: output, priceCached: cached } = options;
  if (input !== undefined && output !== undefined) return { input, output, ...(cached !== undefined && { cached }) };
  if (input !== undefined || output !== undefined || cached !== undefined) {
    throw new Failure("a cost needs the prices of input and of output", { exit: "usage", hint: "Add: --price-input 2 --price-output 8" });
  }
  if (options.prices === undefined || model === null) return null;
  const all = readPrices(resolve(terminal.cwd, options.prices));
  const found = all[model];
  if (found !== undefined) return found;
  throw new Failure(`${options.prices} has no price of '${model}'`, {
    exit: "usage",
    hint: `It has: ${Object.keys(all).join(", ") || "nothing"}. Add the model, or give --price-input and --price-output.`,
  });
}

function readPrices(file: string): Readonly<Record<string, Prices>> {
  const hint = `Write it as: ${EXAMPLE}`;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new Failure(`the prices cannot be read from ${file}: ${messageOf(cause)}`, { exit: "usage", hint, cause });
  }
  const parsed = z.record(z.string(), prices).safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Failure(`the prices in ${file} are not valid: ${z.prettifyError(parsed.error)}`, { exit: "usage", hint });
}
