import { scriptedAgent } from "@aenv/rollout";
import { attackFiles, attacks } from "./attacks.ts";
import { victimSpec, victimTestPatch } from "./victim.ts";

let episodes = 0;

/** An agent of rollouts: plays one attack in each episode, in the order of the list. */
export default {
  name: "attacker",
  settings: {},
  begin: (start: Parameters<ReturnType<typeof scriptedAgent>["begin"]>[0]) => {
    const { script } = attacks[episodes++ % attacks.length] ?? { script: "" };
    const files = [...attackFiles(victimSpec, victimTestPatch)].map(([path, content]) => ({
      tool: "write_file",
      arguments: { path, content },
    }));
    return scriptedAgent([...files, { tool: "bash", arguments: { command: script, timeout: 60 } }]).begin(start);
  },
};
