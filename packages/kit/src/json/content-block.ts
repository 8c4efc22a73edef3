import { type ContentBlock, isObject } from "@aenv/contract";
import * as z from "zod";
import { isBytes, toBlock } from "./bytes.ts";
import { NotJsonError, toJson } from "./to-json.ts";

const base64 = z.string().refine((text) => {
  try {
    atob(text);
    return true;
  } catch {
    return false;
  }
});
const meta = z.record(z.string(), z.unknown()).optional();
const annotations = z
  .object({
    audience: z.array(z.enum(["user", "assistant"])).optional(),
    priority: z.number().min(0).max(1).optional(),
    lastModified: z.iso.datetime({ offset: true }).optional(),
  })
  .optional();
const decoration = { annotations, _meta: meta };
const contents = { uri: z.string(), mimeType: z.string().optional(), _meta: meta };
const icon = z.object({
  src: z.string(),
  mimeType: z.string().optional(),
  sizes: z.array(z.string()).optional(),
  theme: z.enum(["light", "dark"]).optional(),
});

/** MCP's content blocks. An unknown field is left out: clients may be strict about what they take. */
const blocks: Readonly<Record<string, z.ZodType>> = {
  text: z.object({ type: z.literal("text"), text: z.string(), ...decoration }),
  image: z.object({ type: z.literal("image"), data: base64, mimeType: z.string(), ...decoration }),
  audio: z.object({ type: z.literal("audio"), data: base64, mimeType: z.string(), ...decoration }),
  resource: z.object({
    type: z.literal("resource"),
    resource: z.union([z.object({ ...contents, text: z.string() }), z.object({ ...contents, blob: base64 })]),
    ...decoration,
  }),
  resource_link: z.object({
    type: z.literal("resource_link"),
    uri: z.string(),
    name: z.string(),
    title: z.string().optional(),
    description: z.string().optional(),
    mimeType: z.string().optional(),
    size: z.number().optional(),
    icons: z.array(icon).optional(),
    ...decoration,
  }),
};

/**
 * The value as a content block if it is one by MCP's own schema, else null: then it is only data that looks like one.
 * Bytes are one too.
 */
export function readBlock(value: unknown): ContentBlock | null {
  if (isBytes(value)) return toBlock(value);
  if (!isObject(value) || typeof value.type !== "string" || !Object.hasOwn(blocks, value.type)) return null;
  const parsed = blocks[value.type]?.safeParse(plainOrNull(value));
  return parsed?.success === true ? (parsed.data as ContentBlock) : null;
}

/** What cannot be written is found again, with the whole path to it, when the value is taken for data. */
function plainOrNull(value: unknown): unknown {
  try {
    return toJson(value, "the block");
  } catch (error) {
    if (error instanceof NotJsonError) return null;
    throw error;
  }
}

/** All of them as blocks, or null if one is none. */
export function readBlocks(values: readonly unknown[]): ContentBlock[] | null {
  const read: ContentBlock[] = [];
  for (const value of values) {
    const block = readBlock(value);
    if (block === null) return null;
    read.push(block);
  }
  return read;
}
