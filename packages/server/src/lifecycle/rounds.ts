/** Periodic work; rounds never overlap. */
export interface Rounds {
  stop(): Promise<void>;
}

export function startRounds(work: () => Promise<void>, everyMs: number, onFailure: (error: unknown) => void): Rounds {
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  const next = () => {
    timer = setTimeout(() => {
      running = work()
        .catch(onFailure)
        .finally(() => {
          if (!isStopped) next();
        });
    }, everyMs).unref();
  };
  next();
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      return running;
    },
  };
}
