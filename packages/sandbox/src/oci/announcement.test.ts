import { appendFileSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { expectAnnouncement } from "./announcement.ts";

it("an init that listens is noticed by the line in its log, whatever else is there", async () => {
  using tree = temporaryTree({ log: "printed before\n" });
  const path = join(tree.path, "log");
  using announcement = expectAnnouncement(path);
  let isListening = false;
  const noticed = announcement.listening?.then(() => {
    isListening = true;
  });
  appendFileSync(path, "not listening\n");
  appendFileSync(path, "listening on nothing\n");
  await new Promise(setImmediate);
  expect(isListening).toBe(false);
  appendFileSync(path, "listening\n");
  await noticed;
  expect(readFileSync(path, "utf8")).toBe("printed before\nnot listening\nlistening on nothing\nlistening\n");
});

it("a log that does not exist yet is created for its owner only", async () => {
  using tree = temporaryTree({ README: "" });
  const path = join(tree.path, "log");
  using announcement = expectAnnouncement(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  appendFileSync(path, "listening\n");
  await announcement.listening;
});
