(() => {
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const HOUR = 3600e3, DAY = 24 * HOUR;
const WEEK = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const plots = [];

const mod = (a, b) => ((a % b) + b) % b;
const two = (n) => String(n).padStart(2, "0");
const origin = data.weekdays ? 0 : data.begin;
const clock = (ms) => two(Math.floor(mod(ms - origin, DAY) / HOUR)) + ":" +
    two(Math.floor(mod(ms - origin, HOUR) / 60e3));
const day = (ms) => {
    const d = Math.floor((ms - origin) / DAY);
    return data.weekdays ? WEEK[mod(d, 7)] : "day " + (d + 1);
};
const number = (v) => v >= 99.95 ? Math.round(v).toLocaleString("en-GB") : v.toFixed(1);
const peak = (...lists) => Math.max(1, ...lists.map((a) => a.reduce((m, v) => Math.max(m, v), 0)));
const mean = (a) => a.reduce((s, v) => s + v, 0) / (a.length || 1);

function svg(parent, name, attributes) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const k in attributes)
        e.setAttribute(k, attributes[k]);
    return parent.appendChild(e);
}

/* A round distance between ticks so that about `count` of them reach `top`. */
function tickStep(top, count) {
    const raw = top / count, unit = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].find((m) => m * unit >= raw) * unit;
}

function timeStep(span, count) {
    const hours = [1, 3, 6, 12, 24, 48, 96, 168, 336, 672, 1344, 2688];
    return (hours.find((h) => span / (h * HOUR) <= count) || 8760) * HOUR;
}

/* Means of neighbours, so that a line never has more corners than the screen has room for. */
function thin(points, room) {
    const f = Math.max(1, Math.ceil(points.length / room)), out = [];
    for (let i = 0; i < points.length; i += f)
        out.push(mean(points.slice(i, i + f)));
    return { f, v: out };
}

class Plot {
    constructor(box, spec) {
        Object.assign(this, { box, number: plots.length, small: box.classList.contains("small") },
            spec);
        const all = this.series.map((s) => s.begin + s.step * s.points.length);
        this.from = Math.min(...this.series.map((s) => s.begin));
        this.to = Math.max(this.from + 1, ...all);
        this.top = this.top || 1;
        this.label();
        new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(box);
        this.draw();
        box.addEventListener("pointermove", (e) => point(this.time(e)));
        box.addEventListener("pointerdown", (e) => point(this.time(e)));
        box.addEventListener("pointerleave", () => point(null));
        box.addEventListener("keydown", (e) => this.key(e));
        box.addEventListener("focus", () => this.legend.setAttribute("aria-live", "polite"));
        box.addEventListener("blur", () => {
            this.legend.removeAttribute("aria-live");
            point(null);
        });
    }

    label() {
        this.legend = this.box.previousElementSibling;
        const add = (name, cls, parent) => {
            const e = document.createElement(name);
            e.className = cls;
            return parent.appendChild(e);
        };
        this.when = add("span", "when", this.legend);
        this.values = this.series.map((s) => {
            const key = add("span", "key", this.legend);
            add("i", "dot" + (s.line ? " line" : ""), key).style.color = s.colour;
            key.append(s.name);
            const value = add("b", "", key);
            value.style.minWidth = number(peak(s.own || s.points)).length + "ch";
            return value;
        });
        this.read(null);
    }

    x(ms) { return this.left + (ms - this.from) / (this.to - this.from) * this.inner; }
    y(v) { return this.bottom - v / this.top * (this.bottom - 8); }

    time(e) {
        const at = (e.clientX - this.box.getBoundingClientRect().left - this.left) / this.inner;
        return this.from + Math.min(1, Math.max(0, at)) * (this.to - this.from - 1);
    }

    key(e) {
        const step = this.series[0].step, now = cursor === null ? this.from : cursor;
        const to = { ArrowLeft: now - step, ArrowRight: cursor === null ? now : now + step,
            PageUp: now - DAY, PageDown: now + DAY, Home: this.from, End: this.to - 1 }[e.key];
        if (e.key === "Escape")
            point(null);
        if (to === undefined)
            return;
        e.preventDefault();
        point(Math.min(this.to - 1, Math.max(this.from, to)));
    }

    read(ms) {
        const first = this.series[0];
        const at = ms === null ? 0 : ms - mod(ms - first.begin, first.step);
        this.when.textContent = ms === null ? "On average" : day(at) + " " + clock(at);
        this.series.forEach((s, i) => {
            const v = ms === null ? mean(s.own || s.points)
                : (s.own || s.points)[Math.floor((ms - s.begin) / s.step)];
            this.values[i].textContent = v === undefined ? "–" : number(v);
        });
        if (this.mark) {
            const x = ms === null ? -9 : Math.round(this.x(ms));
            this.mark.setAttribute("x1", x);
            this.mark.setAttribute("x2", x);
        }
    }

    draw() {
        /* On paper a frame is as high as what is drawn in it. */
        const w = this.box.clientWidth, h = this.box.clientHeight || (this.small ? 128 : 240);
        if (!w || (w === this.w && h === this.h))
            return;
        Object.assign(this, { w, h, left: this.small ? 26 : 40, bottom: h - 24 });
        this.inner = w - this.left - 1;
        const root = svg(document.createElement("div"), "svg",
            { viewBox: `0 0 ${w} ${h}`, "aria-hidden": "true" });
        this.bands(root);
        this.axes(root);
        const id = "clip-" + this.number;
        svg(svg(root, "clipPath", { id }), "rect",
            { x: this.left, y: 6, width: this.inner, height: this.bottom - 5 });
        const inside = svg(root, "g", { "clip-path": `url(#${id})` });
        this.series.forEach((s) => this.path(inside, s));
        if (this.cap) {
            const y = Math.round(this.y(this.cap));
            svg(root, "line", { class: "cap", x1: this.left, x2: w, y1: y, y2: y });
            svg(root, "text", { class: "halo", x: w - 4, y: y - 5, "text-anchor": "end" })
                .textContent = "all " + number(this.cap).replace(".0", "") + " GPUs";
        }
        this.mark = svg(root, "line", { class: "cursor", x1: -9, x2: -9, y1: 8, y2: this.bottom });
        this.box.replaceChildren(root);
        this.read(cursor);
    }

    bands(root) {
        if (!data.weekdays)
            return;
        const band = (a, b) => {
            const x = this.x(Math.max(a, this.from)), to = this.x(Math.min(b, this.to));
            if (to > x)
                svg(root, "rect", { class: "band", x, y: 6, width: to - x,
                    height: this.bottom - 6 });
        };
        for (let d = Math.floor(this.from / DAY) - 1; d * DAY < this.to; d++) {
            if (mod(d, 7) < 4)
                band(d * DAY + 20 * HOUR, d * DAY + 32 * HOUR);
            else if (mod(d, 7) === 4)
                band(d * DAY + 20 * HOUR, d * DAY + 80 * HOUR);
        }
    }

    axes(root) {
        const step = tickStep(this.top, this.small ? 2 : 4);
        for (let v = 0; v <= this.top; v += step) {
            const y = Math.round(this.y(v));
            svg(root, "line", { class: v ? "grid" : "base", x1: this.left, x2: this.w,
                y1: y, y2: y });
            svg(root, "text", { x: this.left - 7, y: y + 4, "text-anchor": "end" })
                .textContent = (+v.toPrecision(6)).toLocaleString("en-GB");
        }
        const each = timeStep(this.to - this.from, this.inner / (this.small ? 40 : 76));
        const first = origin + Math.ceil((this.from - origin) / each) * each;
        for (let t = first; t < this.to; t += each) {
            const x = Math.round(this.x(t)), midnight = mod(t - origin, DAY) === 0;
            svg(root, "line", { class: "base", x1: x, x2: x,
                y1: this.bottom, y2: this.bottom + 5 });
            const text = midnight ? day(t) + (each < DAY ? " 00:00" : "") : clock(t);
            if (x + 7 * text.length < this.w)
                svg(root, "text", { x: x + 4, y: this.h - 6 }).textContent = text;
        }
    }

    path(parent, s) {
        const room = this.inner / (this.small ? 1.5 : 2), upper = thin(s.points, room);
        const at = (i, v) => {
            const middle = Math.min((i + 0.5) * upper.f, s.points.length);
            return this.x(s.begin + middle * s.step).toFixed(1) + " " + this.y(v).toFixed(1);
        };
        const edge = upper.v.map((v, i) => at(i, v));
        if (!s.line) {
            const lower = s.lower ? thin(s.lower, room).v : upper.v.map(() => 0);
            const back = lower.map((v, i) => at(i, v)).reverse();
            const d = "M" + edge.concat(back).join("L") + "Z";
            svg(parent, "path", { class: s.lower ? "stack" : "area", d }).style.fill = s.colour;
        }
        if (s.lower)
            return;
        const line = svg(parent, "path", { class: "series", d: "M" + edge.join("L") });
        line.style.stroke = s.colour;
        line.style.strokeWidth = s.width || 1.25;
    }
}

let cursor = null;
function point(ms) {
    cursor = ms;
    plots.forEach((p) => p.read(ms));
}

const of = (name, points, colour, more) =>
    ({ name, points, colour, begin: data.begin, step: data.step, ...more });

function stacked() {
    let below = data.used.map(() => 0);
    return data.tenants.map((t, i) => {
        const lower = below;
        below = below.map((v, k) => v + t.held[k]);
        return of(t.name, below, `var(--t${i})`, { lower, own: t.held });
    });
}

function lines(key) {
    return data.policies.map((p, i) => {
        const main = i === data.policies.length - 1;
        return { name: p.name, points: p[key], begin: p.begin, step: p.step, line: true,
            colour: main ? "var(--a0)" : `var(--t${p.colour})`, width: main ? 2 : 1.25 };
    });
}

/* Far more demand than GPUs would flatten what they did: it is cut off at the frame. */
const room = Math.max(data.gpus * 1.18,
    Math.min(peak(data.demand) * 1.02, data.gpus * 2.2 || Infinity));
const share = Math.max(1, ...data.tenants.map((t) => peak(t.held, t.entitled))) * 1.05;
const specs = {
    "use": () => ({ top: room, cap: data.gpus, series: [
        of("GPUs held", data.used, "var(--a0)"),
        of(peak(data.demand) > room ? "asked for (at times beyond the frame)" : "asked for",
            data.demand, "var(--soft)", { line: true })] }),
    "queue": () => ({ top: peak(data.waiting) * 1.05, series: [
        of("jobs waiting", data.waiting, "var(--grey)")] }),
    "share": () => ({ top: data.gpus * 1.18, cap: data.gpus, series: stacked() }),
    "tenant": (box) => {
        const t = data.tenants[box.dataset.slot];
        return { top: share, series: [
            of("held", t.held, `var(--t${box.dataset.slot})`),
            of("entitled", t.entitled, "var(--ink)", { line: true })] };
    },
    "tenant-both": (box) => {
        const slot = box.dataset.slot, [was, is] = data.policies;
        const own = (name, p, more) =>
            ({ name, points: p.held[slot], begin: p.begin, step: p.step, ...more });
        return { top: Math.max(1, ...data.policies.map((p) => peak(...p.held))) * 1.05, series: [
            own("after", is, { colour: `var(--t${slot})` }),
            own("before", was, { colour: "var(--ink)", line: true })] };
    },
    "policies-use": () => ({ top: data.gpus * 1.18, cap: data.gpus, series: lines("used") }),
    "policies-queue": () => ({ top: peak(...data.policies.map((p) => p.waiting)) * 1.05,
        series: lines("waiting") }),
};
document.querySelectorAll(".plot").forEach((box) =>
    plots.push(new Plot(box, specs[box.dataset.chart](box))));
})();
