import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { IdleTimer, timed } from "./idle-timer.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the idle timer", () => {
  it("calls back when no byte was transferred for its time, counted from the last byte", () => {
    const onIdle = vi.fn();
    const idle = new IdleTimer(1_000, onIdle);
    vi.advanceTimersByTime(5_000);
    idle.restart();
    vi.advanceTimersByTime(999);
    idle.restart();
    vi.advanceTimersByTime(999);
    expect(onIdle).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(onIdle).toHaveBeenCalledTimes(1);
  });

  it("leaves no timer behind when it is stopped or closed, and starts none after that", () => {
    const idle = new IdleTimer(1_000, () => {});
    idle.restart();
    idle.stop();
    expect(vi.getTimerCount()).toBe(0);
    idle.restart();
    idle.close();
    idle.restart();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("does not count the time that a body's own source takes", async () => {
    const onIdle = vi.fn();
    const idle = new IdleTimer(1_000, onIdle);
    const { promise, resolve } = Promise.withResolvers<void>();
    async function* source() {
      yield new Uint8Array(1);
      await promise;
      yield new Uint8Array(2);
    }
    idle.restart();
    const body = timed(source(), idle);
    await body.next();
    const second = body.next();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(onIdle).not.toHaveBeenCalled();
    resolve();
    expect((await second).value).toHaveLength(2);
    // The server has received it and reads no more.
    await vi.advanceTimersByTimeAsync(1_000);
    expect(onIdle).toHaveBeenCalledTimes(1);
  });
});
