import type { Command } from "commander";
import { examples } from "../../options/examples.ts";
import { addSubcommands } from "../../options/subcommands.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import * as a2a from "./a2a.ts";
import * as mcp from "./mcp.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description("Makes an environment project of an MCP server or of an agent that speaks A2A. You add tasks and rewards to it.")
    .addHelpText(
      "after",
      examples(
        "aenv mount mcp -- npx -y @modelcontextprotocol/server-memory",
        "aenv mount mcp https://tools.example.com/mcp --name tools",
        "aenv mount a2a https://agents.example.com/shop/",
      ),
    );
  addSubcommands(command, terminal, { mcp, a2a });
}
