import { PyError } from "@aenv/benchmark";
import type { Tally } from "@aenv/benchmark/testing";
import type { Domain } from "../../core/domain.ts";
import { setState } from "../../core/state.ts";
import type { Dict } from "../../python/values/values.ts";
import { callOf, comparable } from "./calls.ts";
import { listAt } from "./vectors.ts";

/** Replays a random episode, and compares every answer, error flag and pair of hashes. */
export function replayEpisode(domain: Domain, record: Dict, tally: Tally): void {
  const where = `episode ${String(record.get("episode"))}`;
  // An episode without a task starts with the unchanged databases.
  const id = record.get("task_id");
  const task = typeof id === "string" ? domain.tasks.find(id) : null;
  if (task === undefined) {
    tally.compare("task", where, "no such task", id);
    return;
  }
  const environment = domain.create({ isSolo: record.get("solo") === true });
  if (task !== null) setState(environment, task.initial_state, task.initial_state?.message_history ?? []);
  tally.compare("init_hash", where, environment.hashes(), listAt(record, "init_hash"));
  let hashes = environment.hashes();
  for (const [i, value] of listAt(record, "calls").entries()) {
    const vector = comparable(value);
    const call = callOf(value);
    const kind = String(vector.kind);
    const place = `${where}, call ${i}: ${call.requestor} ${call.name}`;
    try {
      const { content, error } = environment.getResponse(call);
      tally.compare(kind, place, [content, error], [vector.content, vector.error]);
    } catch (error) {
      if (!(error instanceof PyError)) tally.compare(kind, place, `a bug here: ${String(error)}`, [vector.content, vector.error]);
      else tally.compare(kind, place, `${error.kind}: ${error.message}`, vector.raised ?? vector.content);
    }
    // The vectors have hashes for every call, also for those that only read.
    hashes = environment.hashes();
    tally.compare("hash", place, hashes, vector.hash);
  }
  tally.compare("final_hash", where, hashes, listAt(record, "final_hash"));
}
