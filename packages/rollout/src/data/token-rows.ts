import { mergeTurns } from "../models/sequences.ts";
import type { Sample } from "./role-views.ts";
import type { Row, Skipped } from "./row.ts";

/** One row for each token sequence of a trajectory. Unscored ones have a null reward and nothing to train on. */
export function tokenRows({ id, role, group, turns, outcome }: Sample): readonly Row[] | Skipped {
  const isScored = outcome.kind === "scored";
  const rows = mergeTurns(turns).map(({ token_ids, loss_mask, logprobs, prompt_length, weight_versions }) => {
    const versions = weight_versions.map(({ version }) => version).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    return {
      input_ids: token_ids,
      loss_mask: isScored ? loss_mask : loss_mask.map(() => 0),
      logprobs,
      prompt_length,
      reward: isScored ? outcome.reward : null,
      scored: isScored,
      group_id: group?.id ?? id,
      rollout_id: id,
      ...(role !== undefined && { role }),
      weight_version_min: versions[0] ?? null,
      weight_version_max: versions.at(-1) ?? null,
    };
  });
  return rows.length > 0 ? rows : "no token ids";
}
