import { type CatalogueEntry, isObject, type ToolDescriptor } from "@aenv/contract";
import type { Environment } from "@aenv/sdk";
import Table from "cli-table3";
import type { Output } from "../terminal/terminal.ts";

/** The tools, functions and rewards of an environment. */
export interface Catalogue {
  readonly tools: readonly ToolDescriptor[];
  readonly functions: readonly CatalogueEntry[];
  readonly rewards: readonly CatalogueEntry[];
}

export async function fetchCatalogue(environment: Environment): Promise<Catalogue> {
  const [tools, { functions, reward }] = await Promise.all([listTools(environment), environment.listFunctions()]);
  return { tools: tools.map(withPlainName), functions, rewards: reward };
}

/** The same of any server, which may have no tools or no functions. */
export async function fetchOffer(environment: Environment): Promise<Catalogue> {
  const tools = await listTools(environment).catch(() => []);
  const { functions, reward } = await environment.listFunctions().catch(() => ({ functions: [], reward: [] }));
  return { tools: tools.map(withPlainName), functions, rewards: reward };
}

/** The tools of all roles, where there are roles. */
async function listTools(environment: Environment): Promise<readonly ToolDescriptor[]> {
  const { roles } = await environment.episode.abilities();
  if (roles == null) return environment.listTools();
  const lists = await Promise.all(Object.keys(roles).map((role) => environment.listTools({ role })));
  return [...new Map(lists.flat().map((tool) => [tool.name, tool])).values()];
}

function withPlainName(tool: ToolDescriptor): ToolDescriptor {
  return { ...tool, name: tool.name.slice(tool.name.indexOf("/") + 1) };
}

/** The names, each with its kind: `tool add`. */
export function catalogueNames({ tools, functions, rewards }: Catalogue): string[] {
  return [
    ...tools.map((tool) => `tool ${tool.name}`),
    ...functions.map((entry) => `function ${entry.name}`),
    ...rewards.map((entry) => `reward ${entry.name}`),
  ];
}

export function catalogueTable({ tools, functions, rewards }: Catalogue, output: Output): string {
  const { colors } = output;
  const rows = [
    ...tools.map((tool) => [colors.green("tool"), tool.name, toolArguments(tool), firstLine(tool.description)]),
    ...functions.map((entry) => [colors.blue("function"), entry.name, entryArguments(entry), firstLine(entry.description)]),
    ...rewards.map((entry) => [colors.yellow("reward"), entry.name, entryArguments(entry), firstLine(entry.description)]),
  ];
  const head = ["kind", "name", "arguments", "what it does"];
  const plain = (text: string) => text.replace(COLOR, "");
  const longest = (column: number) => Math.max(...[head, ...rows].map((row) => plain(row[column] as string).length));
  const [kind, name] = [longest(0), Math.min(longest(1), 40)];
  const args = Math.min(longest(2), 36);
  const rest = Math.max(16, Math.min(longest(3), Math.min(output.columns, 120) - kind - name - args - 15));
  const table = new Table({
    head: head.map((title) => colors.dim(title)),
    style: { head: [], border: colors.isColorSupported ? ["gray"] : [] },
    colWidths: [kind, name, args, rest].map((width) => width + 2),
    wordWrap: true,
  });
  table.push(...rows);
  // One line below the titles, none between the rows.
  const lines = table.toString().split("\n");
  return lines.filter((line, index) => index === 2 || !line.includes("├")).join("\n");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
const COLOR = /\x1b\[\d+m/g;

/** An example of a call from the shell: `add n=…`. */
export function callExample({ name, inputSchema }: ToolDescriptor): string {
  const required = Array.isArray(inputSchema.required) ? inputSchema.required : [];
  return [name, ...required.map((key) => `${key}=…`)].join(" ");
}

/** `n: number, note?: string` from the schema's properties. */
function toolArguments({ inputSchema }: ToolDescriptor): string {
  const properties = isObject(inputSchema.properties) ? Object.entries(inputSchema.properties) : [];
  const required = Array.isArray(inputSchema.required) ? inputSchema.required : [];
  return properties.map(([name, schema]) => `${name}${required.includes(name) ? "" : "?"}: ${typeOf(schema)}`).join(", ");
}

function entryArguments({ parameters }: CatalogueEntry): string {
  return Object.entries(parameters)
    .map(([name, { type, default: value }]) => `${name}: ${type}${value == null ? "" : ` = ${value}`}`)
    .join(", ");
}

function typeOf(schema: unknown): string {
  if (!isObject(schema)) return "any";
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `${typeOf(schema.items)}[]`;
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map(typeOf).join(" | ");
  return typeof schema.type === "string" ? schema.type : "any";
}

function firstLine(text: string | undefined): string {
  return text?.split("\n").find((line) => line.trim() !== "") ?? "";
}
