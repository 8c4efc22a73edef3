import { type OpenedChild, openedChild, PlatformError, parseBoundedJson, readBoundedText } from "@aenv/contract";
import { bytesOf, type PlatformLink } from "../link/link.ts";
import type { ChildAnswer, ChildHost, ChildRequest, ChildSpec } from "./backend.ts";

/** The largest answers are snapshots. */
const MAX_ANSWER_BYTES = 64 * 1_024 ** 2;

/** Children that the platform runs. */
export class PlatformChildren implements ChildHost {
  readonly #link: PlatformLink;

  constructor(link: PlatformLink) {
    this.#link = link;
  }

  async open(instanceId: string, spec: ChildSpec, signal: AbortSignal | undefined): Promise<OpenedChild> {
    const { name, episode, seed, task, snapshot } = spec;
    const hasSnapshot = snapshot !== undefined;
    const answer = await this.#link.call({
      path: "/child/open",
      instanceId,
      parameters: { name, episode, seed, ...(task !== null && { task }), has_snapshot: hasSnapshot },
      ...(hasSnapshot && { content: Buffer.from(JSON.stringify(snapshot)) }),
      signal,
    });
    return openedChild.parse(answer);
  }

  async request(instanceId: string, { child, method, path, body }: ChildRequest, signal: AbortSignal | undefined): Promise<ChildAnswer> {
    const stream = await this.#link.request({
      path: "/child/request",
      instanceId,
      parameters: { child, method, path },
      ...(body !== undefined && { content: Buffer.from(JSON.stringify(body)) }),
      signal,
    });
    const whole = await readBoundedText(bytesOf(stream, signal), { maxBytes: MAX_ANSWER_BYTES });
    const end = whole.indexOf("\n");
    if (end < 0) throw new PlatformError("internal", "the platform answered a request to a child without a status");
    const { status, type } = parseBoundedJson(whole.slice(0, end)) as { status: number; type: string };
    return { status, type, text: whole.slice(end + 1) };
  }

  async close(instanceId: string, child: string): Promise<void> {
    await this.#link.call({ path: "/child/close", instanceId, parameters: { child } });
  }
}
