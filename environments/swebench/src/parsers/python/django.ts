import { after, before, beforeLast, PyError, strip, words } from "@aenv/benchmark";
import { Pattern } from "../../python/pattern.ts";
import { eachLine } from "../lines.ts";
import type { StatusMap } from "../parser.ts";
import { newStatusMap } from "../status-map.ts";

const VERSION_TEST = "--version is equivalent to version";
const MIGRATION_PREFIX = "Applying sites.0002_alter_domain_unique...test_no_migrations";
const PASSED_ENDINGS = [" ... ok", " ... OK", " ...  OK"] as const;

/** Tests whose `ok` is on a later line, behind output of the test. `needs` is a part of each match. */
const SPLIT_RESULTS = [
  {
    needs: "Testing against Django installed in",
    pattern: new Pattern("^(.*?)\\s\\.\\.\\.\\sTesting against Django installed in ([\\s\\S]*?) silenced\\)\\.\\nok$", "M"),
  },
  {
    needs: "Internal Server Error: /",
    pattern: new Pattern("^(.*?)\\s\\.\\.\\.\\sInternal Server Error: /(.*)/\\nok$", "M"),
  },
  {
    needs: "System check identified no issues (0 silenced)\nok",
    pattern: new Pattern("^(.*?)\\s\\.\\.\\.\\sSystem check identified no issues \\(0 silenced\\)\\nok$", "M"),
  },
];

export function parseDjango(log: string): StatusMap {
  const map = newStatusMap();
  /** The last test that was started. It is never cleared: a later line `ok` counts for it. */
  let started: string | null = null;
  eachLine(log, (raw) => {
    let line = strip(raw);
    if (line.includes(VERSION_TEST)) map.set(VERSION_TEST, "PASSED");
    if (line.includes(" ... ")) started = before(line, " ... ");
    const ending = PASSED_ENDINGS.find((one) => line.endsWith(one));
    if (ending !== undefined) {
      if (line.startsWith(MIGRATION_PREFIX)) line = strip(after(line, "..."));
      map.set(beforeLast(line, ending), "PASSED");
    }
    if (line.includes(" ... skipped")) map.set(before(line, " ... skipped"), "SKIPPED");
    if (line.endsWith(" ... FAIL")) map.set(before(line, " ... FAIL"), "FAILED");
    if (line.startsWith("FAIL:")) map.set(secondWord(line), "FAILED");
    if (line.endsWith(" ... ERROR")) map.set(before(line, " ... ERROR"), "ERROR");
    if (line.startsWith("ERROR:")) map.set(secondWord(line), "ERROR");
    if (line.startsWith("ok") && started !== null) map.set(started, "PASSED");
  });
  for (const { needs, pattern } of SPLIT_RESULTS) {
    if (!log.includes(needs)) continue;
    for (const [, test = ""] of pattern.findAll(log)) map.set(test, "PASSED");
  }
  return map;
}

function secondWord(line: string): string {
  const word = words(line, 2)[1];
  if (word === undefined) throw new PyError("IndexError", `the line '${line}' names no test`);
  return word;
}
