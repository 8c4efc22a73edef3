import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as mcp from "./mcp.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Makes an environment project of an MCP server. You add tasks and rewards to it.")
    .addHelpText(
      "after",
      examples("aenv mount mcp -- npx -y @modelcontextprotocol/server-memory", "aenv mount mcp https://tools.example.com/mcp --name tools"),
    );
  addSubcommands(command, terminal, { mcp });
}
