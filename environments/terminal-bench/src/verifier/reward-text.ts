const NUMBER = /^[ \t\r\n\v\f]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\r\n\v\f]*$/;

/** The number of `reward.txt`: plain and finite, or null. */
export function parseRewardText(content: string): number | null {
  const number = Number(NUMBER.exec(content)?.[1] ?? Number.NaN);
  return Number.isFinite(number) ? number : null;
}
