import { type ChildGrant, reexportedName, type ToolDescriptor } from "@aenv/contract";
import type { ToolDefinition } from "../definition/definition.ts";

/** Tools of children that the agent of the parent gets as its own, as `<child>__<tool>`. */
export function reexportedTools(grants: readonly ChildGrant[]): readonly ToolDefinition[] {
  return grants.flatMap(({ name, reexport }) => reexport.map((tool) => reexportedTool(name, tool)));
}

function reexportedTool(child: string, { name, title, description, inputSchema, annotations }: ToolDescriptor): ToolDefinition {
  return {
    name: reexportedName(child, name),
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    input: inputSchema,
    ...(annotations !== undefined && { annotations: annotations as Record<string, unknown> }),
    run: async (input, { children }) => {
      const { content, structuredContent, isError } = await children.get(child).callTool(name, input);
      return { content, ...(structuredContent !== undefined && { structuredContent }), ...(isError && { isError }) };
    },
  };
}
