import type { ChatMessage, Step, Turn } from "@aenv/contract";

/** What has happened in an episode so far. A fork copies it and goes on by itself. */
export class EpisodeRecord {
  readonly messages: ChatMessage[];
  readonly steps: Step[];
  readonly turns: Turn[];

  constructor(messages: readonly ChatMessage[] = [], steps: readonly Step[] = [], turns: readonly Turn[] = []) {
    this.messages = [...messages];
    this.steps = [...steps];
    this.turns = [...turns];
  }

  copy(): EpisodeRecord {
    return new EpisodeRecord(this.messages, this.steps, this.turns);
  }
}
