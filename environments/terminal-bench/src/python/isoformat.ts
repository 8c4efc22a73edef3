const DATE = /^(\d{4})(?:-(\d{2})-(\d{2})|(\d{2})(\d{2})|-W(\d{2})(?:-(\d))?|W(\d{2})(\d)?)$/;
const isDigit = (letter: string | undefined): boolean => letter !== undefined && letter >= "0" && letter <= "9";

/**
 * Whether Python's `datetime.fromisoformat` accepts a text: dates of ISO 8601 in the usual, the compact and the week form, any separator,
 * and a time that Python reads from the left without looking at everything.
 */
export function isIsoDateTime(text: string): boolean {
  const letters = [...text];
  const end = dateLength(letters);
  if (!isDate(letters.slice(0, end).join(""))) return false;
  return letters.length <= end || isTime(letters.slice(end + 1));
}

function dateLength(letters: readonly string[]): number {
  if (letters.length === 7) return 7;
  if (letters[4] === "-") {
    if (letters[5] !== "W") return 10;
    if (letters[8] !== "-") return 8;
    // A digit further on shows that the dash separates the week from the time.
    return letters.length > 10 && isDigit(letters[10]) ? 8 : 10;
  }
  if (letters[4] !== "W") return 8;
  let at = 7;
  while (isDigit(letters[at])) at++;
  return at < 9 ? at : at % 2 === 0 ? 7 : 8;
}

function isDate(text: string): boolean {
  const match = DATE.exec(text);
  if (match === null) return false;
  const [, year, month1, day1, month2, day2, week1, weekday1, week2, weekday2] = match;
  const [month, day, week] = [month1 ?? month2, day1 ?? day2, week1 ?? week2];
  if (Number(year) < 1) return false;
  if (week !== undefined) return isWeek(Number(year), Number(week), Number(weekday1 ?? weekday2 ?? 1));
  return (
    Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= utcDay(Number(year), Number(month), 0).getUTCDate()
  );
}

/** A year has 53 weeks if its first day, or its last one, is a Thursday. */
function isWeek(year: number, week: number, weekday: number): boolean {
  const weeks = utcDay(year, 0, 1).getUTCDay() === 4 || utcDay(year, 11, 31).getUTCDay() === 4 ? 53 : 52;
  return week >= 1 && week <= weeks && weekday >= 1 && weekday <= 7;
}

function utcDay(year: number, month: number, day: number): Date {
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  return date;
}

function isTime(letters: readonly string[]): boolean {
  const zoneAt = letters.findIndex((letter) => letter === "+" || letter === "-" || letter === "Z");
  const clock = readClock(zoneAt < 0 ? letters : letters.slice(0, zoneAt));
  if (clock === null || clock.hour > 23 || clock.minute > 59 || clock.second > 59) return false;
  if (zoneAt < 0) return clock.isWhole;
  if (letters[zoneAt] === "Z") return zoneAt === letters.length - 1;
  const zone = readClock(letters.slice(zoneAt + 1));
  return zone?.isWhole === true && zone.hour * 3600 + zone.minute * 60 + zone.second < 24 * 3600;
}

interface Clock {
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  /** Whether nothing follows; Python tolerates some letters before a time zone. */
  readonly isWhole: boolean;
}

/** Two digits each, with or without colons, and a fraction. */
function readClock(letters: readonly string[]): Clock | null {
  const hasColons = letters[2] === ":";
  const parts: number[] = [];
  const result = (isWhole: boolean): Clock => ({ hour: parts[0] ?? 0, minute: parts[1] ?? 0, second: parts[2] ?? 0, isWhole });
  let at = 0;
  while (parts.length < 3) {
    if (!isDigit(letters[at]) || !isDigit(letters[at + 1])) return null;
    parts.push(Number(`${letters[at]}${letters[at + 1]}`));
    at += 2;
    if (at >= letters.length - 1) return result(at >= letters.length);
    const letter = letters[at++];
    if (letter === "." || letter === ",") break;
    if (hasColons && letter !== ":") return null;
    if (!hasColons) at--;
  }
  const fraction = letters.slice(at, at + 6);
  if (!fraction.every(isDigit)) return null;
  at += fraction.length;
  while (isDigit(letters[at])) at++;
  return result(at >= letters.length);
}
