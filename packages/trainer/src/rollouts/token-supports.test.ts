import { expect, it } from "vitest";
import { TokenSupports } from "./token-supports.ts";

it("remembers per owner that an endpoint refuses tokens: the same URL of another owner is still asked", () => {
  const supports = new TokenSupports();
  supports.of("ada", "http://model/v1").isRefused = true;
  expect(supports.of("ada", "http://model/v1").isRefused).toBe(true);
  expect(supports.of("bob", "http://model/v1").isRefused).toBe(false);
});

it("forgets the oldest endpoint of an owner that names many, and nothing of other owners", () => {
  const supports = new TokenSupports();
  supports.of("bob", "http://model/v1").isRefused = true;
  for (let n = 0; n < 1_001; n++) supports.of("ada", `http://model/${n}`).isRefused = true;
  expect(supports.of("ada", "http://model/1").isRefused).toBe(true);
  expect(supports.of("ada", "http://model/0").isRefused).toBe(false);
  expect(supports.of("bob", "http://model/v1").isRefused).toBe(true);
});

it("remembers a bounded number of owners", () => {
  const supports = new TokenSupports();
  for (let n = 0; n < 1_500; n++) supports.of(`owner-${n}`, "http://model/v1");
  expect(supports.owners).toBe(1_000);
});
