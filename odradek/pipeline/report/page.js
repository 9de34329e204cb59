// Draws each chart when it is first seen to be needed, in the colours of the page, and again in the others when these change.
"use strict";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const coarse = window.matchMedia("(pointer: coarse)").matches;
const config = { displayModeBar: false, responsive: true, doubleClick: "reset", scrollZoom: false };

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const axis = { gridcolor: of("--line"), linecolor: of("--line"), zerolinecolor: of("--line"), tickcolor: of("--line") };
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: of("--ink"), size: 12, family: getComputedStyle(document.body).fontFamily },
    hoverlabel: { bgcolor: of("--panel"), bordercolor: of("--line"), font: { color: of("--ink") } },
    axis,
  };
}

function layoutOf(chart, layout) {
  const { axis, ...rest } = colours();
  // A finger that moves over a chart scrolls the page.
  const narrow = chart.clientWidth < 600;
  const short = (text) => (text.length > 13 ? `${text.slice(0, 12)}…` : text);
  const labels = narrow && layout.yaxis.ticktext ? { ticktext: layout.yaxis.ticktext.map(short) } : {};
  return {
    ...layout,
    ...rest,
    margin: { ...layout.margin, l: narrow ? 96 : layout.margin.l },
    dragmode: coarse ? false : "zoom",
    xaxis: { ...layout.xaxis, ...axis, showgrid: true, nticks: narrow ? 3 : 6 },
    yaxis: { ...layout.yaxis, ...axis, ...labels, showgrid: true, zeroline: false, fixedrange: true },
  };
}

function draw(chart) {
  if (chart.figure) return;
  chart.figure = JSON.parse(document.getElementById(chart.dataset.figure).textContent);
  Plotly.newPlot(chart, chart.figure.data, layoutOf(chart, chart.figure.layout), config);
}

function drawWithin(element) {
  element.querySelectorAll(".chart").forEach((chart) => { if (!chart.closest("details:not([open])")) draw(chart); });
}

document.querySelectorAll("details").forEach((details) => details.addEventListener("toggle", () => drawWithin(details)));
dark.addEventListener("change", () => document.querySelectorAll(".chart").forEach((chart) => {
  if (chart.figure) Plotly.react(chart, chart.figure.data, layoutOf(chart, chart.figure.layout), config);
}));
drawWithin(document);
