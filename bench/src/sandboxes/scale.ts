/** How much is measured. */
export interface Scale {
  readonly rounds: number;
  /** Commands of one round. */
  readonly commands: number;
  /** Sandboxes that live at the same time. */
  readonly live: number;
  /** Files of 100 KiB that a file fork copies. */
  readonly files: number;
  /** Memory of the process that a memory fork copies. */
  readonly memoryMb: number;
  readonly forks: number;
}

export const FULL: Scale = { rounds: 12, commands: 20, live: 200, files: 1_000, memoryMb: 100, forks: 8 };
