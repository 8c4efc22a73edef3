import type { UnscoredCause } from "@aenv/contract";
import type { EpisodeScore, RunProgress } from "@aenv/rollout";
import { fit } from "../terminal/fit.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { moneyText } from "./summary-view.ts";

const EVERY_MS = 100;
const WIDTH = 24;
/** Where stderr is no terminal, a line after each so many milliseconds. */
const LINE_EVERY_MS = 10_000;

/** Shows how far a run is: one line that is redrawn at a terminal, a line now and then elsewhere. */
export class LiveView {
  readonly #terminal: Terminal;
  readonly #startedAt = performance.now();
  #shownAt = Number.NEGATIVE_INFINITY;
  #doneAtStart: number | null = null;
  /** How many of the scores are counted below. */
  #counted = 0;
  #rewards = 0;
  #scored = 0;
  readonly #unscored = new Map<UnscoredCause, number>();
  #tokens = 0;
  #toolCalls = 0;
  #cost = 0;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  show(progress: RunProgress): void {
    this.#doneAtStart ??= progress.done;
    this.#count(progress);
    const { stderr } = this.#terminal;
    const now = performance.now();
    const isLast = progress.done === progress.total;
    if (now - this.#shownAt < (stderr.isTty ? EVERY_MS : LINE_EVERY_MS) && !isLast) return;
    this.#shownAt = now;
    const text = this.#text(progress, (now - this.#startedAt) / 1_000);
    stderr.write(stderr.isTty ? `\r\x1b[2K${fit(text, stderr.columns - 1)}` : `${text}\n`);
  }

  end(): void {
    const { stderr } = this.#terminal;
    if (stderr.isTty) stderr.write("\r\x1b[2K");
  }

  /** Episodes of earlier calls count too, except for the rate of tool calls. */
  #count({ scores, last }: RunProgress): void {
    for (; this.#counted < scores.length; this.#counted++) {
      const { reward, cause, tokens, cost } = scores[this.#counted] as EpisodeScore;
      if (reward !== null) {
        this.#scored++;
        this.#rewards += reward;
      }
      if (cause !== null) this.#unscored.set(cause, (this.#unscored.get(cause) ?? 0) + 1);
      this.#tokens += tokens;
      this.#cost += cost ?? 0;
    }
    this.#toolCalls += last?.steps.length ?? 0;
  }

  #text({ done, total, running }: RunProgress, seconds: number): string {
    const { colors, isTty } = this.#terminal.stderr;
    const played = done - (this.#doneAtStart ?? 0);
    const left = played === 0 ? "" : `, ${duration(((total - done) * seconds) / played)} left`;
    const full = Math.round((done / Math.max(1, total)) * WIDTH);
    const bar = isTty ? `${colors.cyan("━".repeat(full))}${colors.dim("━".repeat(WIDTH - full))} ` : "";
    const reward = this.#scored === 0 ? "" : `  reward ${(this.#rewards / this.#scored).toFixed(3)}`;
    const causes = [...this.#unscored].map(([cause, count]) => `${count} ${cause}`).join(", ");
    const unscored = causes === "" ? "" : `  ${colors.yellow(`unscored: ${causes}`)}`;
    const rates = `  ${(this.#toolCalls / Math.max(seconds, 0.001)).toFixed(0)} tool calls/s${this.#tokens === 0 ? "" : `  ${this.#tokens} tokens`}${this.#cost === 0 ? "" : `  cost ${moneyText(this.#cost)}`}`;
    return `${bar}${done}/${total} done, ${running} running${left}${reward}${unscored}${colors.dim(rates)}`;
  }
}

function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole}s`;
  return whole < 3_600 ? `${Math.floor(whole / 60)}m${whole % 60}s` : `${Math.floor(whole / 3_600)}h${Math.floor((whole % 3_600) / 60)}m`;
}
