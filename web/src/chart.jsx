/* A chart over time by uPlot, in the page's colours, with its figures in words for those who do not see it. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

/** times: seconds; series: [{name, values, colour: a CSS variable, fill}] */
const day = (t) => new Date(t * 1000).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

export function Chart({ times, series, label, unit = '', height = 220, top = 0, least = 1, when = day }) {
  const box = useRef();
  const text = JSON.stringify([times, series]);
  useEffect(() => {
    const place = box.current;
    const css = getComputedStyle(document.documentElement);
    const colour = (name) => css.getPropertyValue(name).trim();
    const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '12px system-ui, sans-serif' };
    const plot = new uPlot({
      width: place.clientWidth, height, padding: [12, 28, 0, 0],
      cursor: { y: false }, legend: { live: true },
      scales: { y: { range: (u, min, max) => [0, Math.max(least, top || max * 1.1)] } },
      axes: [{ ...axis, size: 34, space: 76, values: (u, list) => list.map(when) }, { ...axis, size: 60, values: (u, list) => list.map((v) => `${Math.round(v * 100) / 100}${unit}`) }],
      series: [{ label: 'When', value: (u, t) => (t == null ? '' : when(t)) }, ...series.map((s) => ({ label: s.name, stroke: colour(s.colour), width: 2, dash: s.dash, fill: s.fill ? `${colour(s.colour)}22` : undefined,
        points: { show: times.length < 3 }, value: (u, v) => (v == null ? '' : `${Math.round(v * 100) / 100}${unit}`) }))],
    }, [times, ...series.map((s) => s.values)], place);
    let last = times.length - 1;
    while (last > 0 && series.every((s) => s.values[last] == null)) last -= 1;
    const rest = () => plot.setCursor({ left: plot.valToPos(times[last], 'x'), top: 0 }); /* the last figures, until somebody points */
    rest();
    const watch = new ResizeObserver(() => { plot.setSize({ width: place.clientWidth, height }); rest(); });
    watch.observe(place);
    return () => { watch.disconnect(); plot.destroy(); };
  }, [text, document.documentElement.dataset.theme, height]);
  return <div class="chart" ref={box} role="img" aria-label={label} style={{ minHeight: `${height + 30}px` }} />;
}
