import type { Command } from "commander";
import { examples } from "../options/examples.ts";
import { playRollout } from "../rollout/rollout.ts";
import { addRolloutOptions, type RolloutOptions } from "../rollout/rollout-options.ts";
import type { Terminal } from "../terminal/terminal.ts";

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Plays an agent against the tasks of an environment and scores every episode. A folder or a built-in environment is played on a server inside of this command. The same command line goes on with a run that was stopped.",
    )
    .argument("<environment>", "a folder, a built-in environment such as echo, or name@version on a server")
    .argument("[command...]", "the program of the agent 'command', after --");
  addRolloutOptions(command)
    .addHelpText(
      "after",
      examples(
        "aenv rollout echo",
        "aenv rollout ./my-env --agent random -n 100",
        "aenv rollout shop@1.0.0 --agent openai --model M --base-url http://127.0.0.1:8000/v1 --split train -n 8 --concurrency 256",
        "aenv rollout ./my-env --agent scripted --agent-file actions.json",
        "aenv rollout ./my-env --engine oci -c 4",
        "aenv rollout shop@1.0.0 --agent command --model M -- python agent.py",
        "aenv rollout games --player white=openai:M --player black=oracle -n 64",
        "aenv rollout games --player white=openai:M --player black=openai:OLD --player black=openai:OLDER --rotate",
      ),
    )
    .action((environment: string, program: string[], options: RolloutOptions) => playRollout(environment, program, options, terminal));
}
