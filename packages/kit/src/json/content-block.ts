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

/** MCP's content blocks. Unknown fields are dropped, because clients may be strict. */
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
 * The value as a content block if it matches MCP's own schema, else null: then it is data that only looks like a block.
 * Bytes are converted to a block.
 */
export function readBlock(value: unknown): ContentBlock | null {
  if (isBytes(value)) return toBlock(value);
  if (!isObject(value) || typeof value.type !== "string" || !Object.hasOwn(blocks, value.type)) return null;
  const parsed = blocks[value.type]?.safeParse(jsonOrNull(value));
  return parsed?.success === true ? (parsed.data as ContentBlock) : null;
}

/** Null for a value without a JSON form; the error with its path follows when the value is converted as data. */
function jsonOrNull(value: unknown): unknown {
  try {
    return toJson(value, "the block");
  } catch (error) {
    if (error instanceof NotJsonError) return null;
    throw error;
  }
}

/** All values as blocks, or null if one of them is not a block. */
export function readBlocks(values: readonly unknown[]): ContentBlock[] | null {
  const read: ContentBlock[] = [];
  for (const value of values) {
    const block = readBlock(value);
    if (block === null) return null;
    read.push(block);
  }
  return read;
}
