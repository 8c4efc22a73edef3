const DATE = /^(\d{4})(?:-(\d{2})-(\d{2})|(\d{2})(\d{2})|-W(\d{2})(?:-(\d))?|W(\d{2})(\d)?)/;
const TIME = /^(\d{2})(?:(:?)(\d{2})(?:\2(\d{2})(?:[.,](\d+))?)?)?$/;

/** Whether Python's `datetime.fromisoformat` accepts a text: dates of ISO 8601 in the usual, the compact and the week form, with any separator before the time. */
export function isIsoDateTime(text: string): boolean {
  const match = DATE.exec(text);
  if (match === null || !isDate(match)) return false;
  const rest = text.slice(match[0].length);
  if (rest === "") return true;
  const [separator = ""] = rest;
  return isTimeWithZone(rest.slice(separator.length));
}

function isDate([, year, month1, day1, month2, day2, week1, weekday1, week2, weekday2]: RegExpExecArray): boolean {
  const [month, day, week] = [month1 ?? month2, day1 ?? day2, week1 ?? week2];
  if (Number(year) < 1) return false;
  if (week !== undefined) return isWeek(Number(year), Number(week), Number(weekday1 ?? weekday2 ?? 1));
  return Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= daysIn(Number(year), Number(month));
}

function daysIn(year: number, month: number): number {
  const date = new Date(Date.UTC(2000, month, 0));
  date.setUTCFullYear(year, month, 0);
  return date.getUTCDate();
}

/** A year has 53 weeks if its first day, or its last one, is a Thursday. */
function isWeek(year: number, week: number, weekday: number): boolean {
  const day = (month: number, date: number): number => {
    const at = new Date(0);
    at.setUTCFullYear(year, month, date);
    return at.getUTCDay();
  };
  const weeks = day(0, 1) === 4 || day(11, 31) === 4 ? 53 : 52;
  return week >= 1 && week <= weeks && weekday >= 1 && weekday <= 7;
}

function isTimeWithZone(text: string): boolean {
  const zoneAt = text.search(/[Zz+-]/);
  const clock = zoneAt < 0 ? text : text.slice(0, zoneAt);
  const zone = zoneAt < 0 ? "" : text.slice(zoneAt);
  if (!isClock(clock)) return false;
  if (zone === "" || zone === "Z" || zone === "z") return true;
  return /^[+-]/.test(zone) && isClock(zone.slice(1));
}

function isClock(text: string): boolean {
  const [, hour, , minute = "0", second = "0"] = TIME.exec(text) ?? [];
  return hour !== undefined && Number(hour) <= 23 && Number(minute) <= 59 && Number(second) <= 59;
}
