import * as z from "zod";

/** One tool call in an assistant message. `arguments` is the text that the model wrote: it is sent back unchanged. */
export const chatToolCall = z.looseObject({
  id: z.string(),
  type: z.literal("function"),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});
export type ChatToolCall = z.infer<typeof chatToolCall>;

/**
 * A message in the form of OpenAI's chat completions. Fields that are not listed, such as `reasoning_content`, are kept, so that a
 * model sees its own messages again exactly as it wrote them.
 */
export const chatMessage = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() })), z.null()]).optional(),
  tool_calls: z.array(chatToolCall).optional(),
  tool_call_id: z.string().optional(),
  name: z.string().optional(),
});
export type ChatMessage = z.infer<typeof chatMessage>;

/** The text of a message: its string content, or its text parts joined. */
export function textOf({ content }: Pick<ChatMessage, "content">): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => (part.type === "text" && typeof part.text === "string" ? part.text : "")).join("");
}
