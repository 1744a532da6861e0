"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "star"];
  const MOST_LISTED = 12;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let data = JSON.parse(byId("data").textContent);
  let printing = false;

  // The library, compressed in the page.
  async function loadLibrary() {
    const packed = Uint8Array.from(atob(byId("plotly").textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  // Looks ---------------------------------------------------------------------------------------------------
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const parts = (name) => {
    const number = parseInt(color(name).slice(1), 16);
    return [number >> 16, (number >> 8) & 255, number & 255];
  };
  // An algorithm has one colour. Its settings differ in dashes and symbols, and where these run out, in the tone;
  // .tone-1 and .tone-2 of the style sheet are the same.
  const TONES = [["ink", 0], ["ink", 0.55], ["page", 0.3]];
  function tone(agent) {
    const [other, share] = TONES[Math.floor(agent.dash / 6) % 3], mixed = parts(other);
    return parts(agent.color).map((part, i) => Math.round((1 - share) * part + share * mixed[i]));
  }
  const toned = (agent, alpha = 1) => `rgba(${tone(agent).join(", ")}, ${alpha})`;
  const dash = (agent) => DASHES[agent.dash % 6];
  const symbol = (agent) => SYMBOLS[agent.dash % 6];
  function layout(titleX, titleY, more = {}) {
    const axis = (title) => ({
      title: { text: title, standoff: 8 }, gridcolor: color("grid"), linecolor: color("line"),
      zerolinecolor: color("grid"), automargin: true,
    });
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color("ink"), family: "system-ui, sans-serif", size: 13 },
      margin: { l: 55, r: 12, t: 8, b: 45 }, height: 320, showlegend: false, uirevision: "same",
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      hoverlabel: { bgcolor: color("card"), bordercolor: color("line"), font: { color: color("ink") }, namelength: -1 },
      xaxis: axis(titleX), yaxis: axis(titleY), ...more,
    };
  }
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset+autosize" };

  // Charts --------------------------------------------------------------------------------------------------
  function chart(box, id, title, description, withTools = false) {
    let whole = byId(id);
    if (!whole) {
      whole = document.createElement("div");
      whole.className = "chart";
      whole.id = id;
      whole.append(document.createElement("h3"), document.createElement("div"), document.createElement("div"));
      const [heading, plot, tools] = whole.children;
      heading.id = id + "-title";
      plot.className = "plot";
      plot.tabIndex = 0;
      plot.setAttribute("role", "group");
      plot.setAttribute("aria-labelledby", heading.id);
      if (description) plot.setAttribute("aria-describedby", description);
      plot.addEventListener("keydown", (event) => move(plot, event));
      tools.className = "tools";
      if (withTools) for (const [text, key, name] of [["+", "+", "Zoom in"], ["−", "-", "Zoom out"], ["Reset", "0", "Reset zoom"]]) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = text;
        button.setAttribute("aria-label", `${name}: ${title}`);
        button.addEventListener("click", () => move(plot, { key, preventDefault() {} }));
        tools.append(button);
      }
      box.append(whole);
    }
    whole.querySelector("h3").textContent = title;
    return whole.querySelector(".plot");
  }
  function move(plot, event) {
    const { key } = event;
    if (key === "0") {
      event.preventDefault();
      const first = plot.firstRange || {};
      Plotly.relayout(plot, {
        "xaxis.autorange": true, ...(first.y ? { "yaxis.range": first.y } : { "yaxis.autorange": true }),
        ...(first.x ? { "xaxis.range": first.x, "xaxis.autorange": false } : {}),
      });
      return;
    }
    const steps = { "+": [0.25, -0.25], "=": [0.25, -0.25], "-": [-0.5, 0.5], ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2] };
    const range = plot._fullLayout && plot._fullLayout.xaxis.range;
    if (!(key in steps) || !range || plot._fullLayout.xaxis.type !== "linear") return;
    event.preventDefault();
    const width = range[1] - range[0];
    Plotly.relayout(plot, { "xaxis.range": [range[0] + steps[key][0] * width, range[1] + steps[key][1] * width] });
  }
  const isOn = (agent) => {
    const box = all("[data-agent]").find((one) => one.dataset.agent === agent.label);
    return !box || box.checked;
  };
  // A title that is longer than its chart is wide would be cut: it goes over two lines.
  const folded = (text, plot) => (plot.clientWidth < 480 ? text.replace(/^(\S+ of) /, "$1<br>") : text);
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // Where the numbers are: intervals of few seeds may reach far beyond, and are cut off.
  function range(numbers, room = 0.08) {
    const there = numbers.filter((number) => number !== null && number !== undefined);
    if (!there.length) return undefined;
    const low = there.reduce((a, b) => Math.min(a, b)), high = there.reduce((a, b) => Math.max(a, b));
    const wide = (high - low) * room || Math.abs(high) * 0.05 || 1;
    return [low - wide, high + wide];
  }

  // All boxes are made before any chart is drawn: a chart takes its width from the columns that there are.
  function chartsOf(box, id, tasks, withTools = false) {
    const place = (task) => data.tasks.indexOf(task);
    return tasks.map((task) => chart(box, `${id}-${place(task)}`, task.name, `line-${place(task)}`, withTools));
  }

  function drawCurves() {
    const box = byId("curves");
    if (!box) return;
    const plots = chartsOf(box, "curve", data.tasks, true);
    data.tasks.forEach((task, place) => {
      const quantity = byId("quantity").value || task.quantity;
      // Bands lie below all lines: above, they would change the colours by which agents are told apart.
      const bands = [], traces = [];
      const shown = task.agents.filter((agent) => isOn(agent) && agent.curves[quantity]);
      // Many bands on top of each other would hide what is behind them.
      const density = 0.18 * Math.min(1, 4 / shown.length);
      for (const agent of shown) {
        const curve = agent.curves[quantity];
        const name = plain(agent.label);
        if (byId("single").checked) {
          (agent.runs[quantity] || []).forEach((run, number) => traces.push({
            x: run.x, y: run.y, mode: "lines", line: { color: toned(agent), width: 0.8, dash: dash(agent) },
            opacity: 0.55, name: `${name}, seed ${agent.seeds[number]}`, hovertemplate: "%{y:.4g}",
          }));
        }
        if (curve.low && byId("bands").checked) {
          bands.push({ x: curve.x, y: curve.low, mode: "lines", line: { width: 0 }, hoverinfo: "skip" });
          bands.push({
            x: curve.x, y: curve.high, mode: "lines", line: { width: 0 }, hoverinfo: "skip", fill: "tonexty",
            fillcolor: toned(agent, density),
          });
        }
        const between = curve.low ? curve.x.map((_, i) => ` [${short(curve.low[i])}, ${short(curve.high[i])}]`) : curve.x.map(() => "");
        traces.push({
          x: curve.x, y: curve.mean, mode: curve.x.length === 1 ? "markers" : "lines", name, text: between,
          line: { color: toned(agent), width: 2.2, dash: dash(agent) },
          marker: { color: toned(agent), symbol: symbol(agent) },
          hovertemplate: "%{y:.4g}%{text}",
        });
      }
      const numbers = shown.flatMap((agent) => [
        ...agent.curves[quantity].mean,
        ...(byId("single").checked ? (agent.runs[quantity] || []).flatMap((run) => run.y) : []),
      ]);
      // The list of all agents at one place must fit into the chart.
      const hovermode = shown.length <= MOST_LISTED ? "x unified" : "closest";
      const shape = layout(task.axis, data.quantities[quantity], { hovermode, uirevision: quantity });
      shape.yaxis.range = range(numbers);
      draw(plots[place], [...bands, ...traces], shape);
    });
  }
  const short = (number) => (number === null ? "?" : Number(number.toPrecision(4)).toString());

  function drawFinals() {
    const box = byId("finals");
    if (!box) return;
    const plots = chartsOf(box, "final", data.tasks);
    data.tasks.forEach((task, place) => {
      const agents = task.agents.filter((agent) => agent.final && isOn(agent)).reverse();
      const longest = plots[place].clientWidth < 480 ? 26 : 40;
      const name = (agent) => plain(agent.label.length > longest ? agent.label.slice(0, longest - 1) + "…" : agent.label);
      // Agents have numbers: labels that begin alike would be one category.
      const traces = agents.flatMap((agent, row) => [
        {
          // Below the mean and its interval, which would hide them.
          x: agent.finals, y: agent.finals.map(() => row - 0.3), mode: "markers", hovertemplate: "%{text}<extra></extra>",
          text: agent.finals.map((value, i) => `seed ${agent.seeds[i]}: ${short(value)}`),
          marker: { color: toned(agent), size: 6, symbol: symbol(agent) + "-open" },
        },
        {
          x: [agent.final.value], y: [row], mode: "markers", name: name(agent),
          error_x: agent.final.low === null ? undefined : {
            type: "data", symmetric: false, array: [agent.final.high - agent.final.value],
            arrayminus: [agent.final.value - agent.final.low], color: toned(agent), thickness: 2.5, width: 6,
          },
          marker: { color: toned(agent), size: 11, symbol: symbol(agent) },
          hovertemplate: `%{x:.4g}${agent.final.low === null ? "" : ` [${short(agent.final.low)}, ${short(agent.final.high)}]`}`,
        },
      ]);
      const shape = layout(folded(data.quantities[task.quantity], plots[place]), "", { height: 110 + 34 * agents.length });
      shape.xaxis.range = range(agents.flatMap((agent) => agent.finals), 0.15);
      Object.assign(shape.yaxis, {
        tickvals: agents.map((_, row) => row), ticktext: agents.map(name), range: [-0.7, agents.length - 0.3], fixedrange: true,
      });
      draw(plots[place], traces, shape);
    });
  }

  function drawTradeoffs() {
    const box = byId("tradeoffs");
    if (!box) return;
    const tasks = data.tasks.filter((task) => task.agents.some((agent) => agent.decisions));
    const plots = chartsOf(box, "tradeoff", tasks);
    tasks.forEach((task, place) => {
      const agents = task.agents.filter((agent) => agent.final && agent.decisions && isOn(agent));
      const bars = (estimate, agent) => (estimate.low === null ? undefined : {
        type: "data", symmetric: false, array: [estimate.high - estimate.value],
        arrayminus: [estimate.value - estimate.low], color: toned(agent, agents.length > 8 ? 0.4 : 1), thickness: 1.5, width: 4,
      });
      const traces = agents.map((agent) => ({
        x: [agent.decisions.value], y: [agent.final.value], mode: "markers", name: plain(agent.label),
        error_x: bars(agent.decisions, agent), error_y: bars(agent.final, agent),
        marker: { color: toned(agent), size: 12, symbol: symbol(agent), line: { color: color("page"), width: 1 } },
        hovertemplate: "%{y:.4g} with %{x:.4g} decisions",
      }));
      const shape = layout("decisions per episode", data.quantities[task.quantity]);
      // There are no fewer decisions than none.
      const most = agents.reduce((before, agent) => Math.max(before, agent.decisions.value), 0) || 1;
      shape.xaxis.range = [-0.03 * most, 1.12 * most];
      shape.yaxis.range = range(agents.flatMap((agent) => [agent.final.value, ...agent.finals]), 0.12);
      draw(plots[place], traces, shape);
    });
  }

  function heldAgents() {
    return data.tasks.flatMap((task) => task.agents.filter((agent) => agent.holds).map((agent) => ({ task, agent })));
  }
  function drawHolds() {
    const box = byId("holds");
    if (!box) return;
    const held = heldAgents(), select = byId("held-agent");
    if (select.options.length !== held.length) {
      const before = select.selectedIndex;
      select.replaceChildren(...held.map(({ task, agent }) => new Option(`${task.name}: ${agent.label}`)));
      select.selectedIndex = Math.max(before, 0);
    }
    // While training goes on, those that had holds may leave the page.
    if (!held.length) return box.replaceChildren();
    const { task, agent } = held[Math.max(select.selectedIndex, 0)];
    const holds = agent.holds, n = holds.durations.length;
    // Longer holds are darker, so that the order shows without any sense of colour.
    const shade = (i) => `hsl(205, 60%, ${n === 1 ? 50 : 82 - (58 * i) / (n - 1)}%)`;
    const traces = holds.durations.map((steps, i) => ({
      x: holds.steps, y: holds.shares[i], stackgroup: "one", name: steps,
      line: { width: 0.5, color: shade(i) }, fillcolor: shade(i), hovertemplate: "%{y:.0%}",
    }));
    const plot = chart(box, "held", `${task.name}: ${agent.label}`, undefined, true);
    const shape = layout(task.axis, "share of decisions", {
      hovermode: "x unified", showlegend: true, legend: { orientation: "h", y: -0.2, traceorder: "normal" }, height: 380,
    });
    Object.assign(shape.yaxis, { tickformat: ".0%", range: [0, 1] });
    draw(plot, traces, shape);
  }

  function draw(plot, traces, shape) {
    if (printing) Object.assign(shape, { width: 620, autosize: false });
    plot.firstRange = { x: shape.xaxis.range, y: shape.yaxis.range };
    Plotly.react(plot, traces, shape, config);
    all("svg", plot).forEach((one) => one.setAttribute("aria-hidden", "true"));
  }
  function drawAll() {
    for (const part of [drawFinals, drawCurves, drawTradeoffs, drawHolds]) part();
  }

  // Tables --------------------------------------------------------------------------------------------------
  const orders = {};
  function sort(table, column, kind, ascending) {
    const key = (row) => {
      const cell = row.cells[column];
      if (kind !== "number") return cell.textContent.trim().toLowerCase();
      return cell.dataset.value === undefined ? NaN : Number(cell.dataset.value);
    };
    const rows = [...table.tBodies[0].rows].sort((one, two) => {
      const a = key(one), b = key(two);
      if (kind === "number" && (Number.isNaN(a) || Number.isNaN(b))) return Number.isNaN(a) - Number.isNaN(b);
      return (a < b ? -1 : a > b ? 1 : 0) * (ascending ? 1 : -1);
    });
    table.tBodies[0].append(...rows);
    all("th", table.tHead).forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    orders[table.id] = [column, kind, ascending];
  }
  function filter(input) {
    const table = byId(input.dataset.filter), words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    const shown = rows.filter((row) => !row.hidden).length;
    all(`[data-count="${table.id}"]`)[0].textContent = words.length ? `${shown} of ${rows.length}` : "";
  }

  // Switches ------------------------------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-sort]");
    if (!button) return;
    const head = button.closest("th"), first = button.dataset.sort === "number" ? "descending" : "ascending";
    const ascending = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "ascending" : first === "ascending";
    sort(head.closest("table"), head.cellIndex, button.dataset.sort, ascending);
  });
  document.addEventListener("input", (event) => {
    const one = event.target;
    if (one.dataset.filter) return filter(one);
    if (one.dataset.family !== undefined) {
      all("[data-of]").forEach((box) => { if (box.dataset.of === one.dataset.family) box.checked = one.checked; });
    }
    if (one.dataset.of !== undefined) {
      const whole = all("[data-family]").find((box) => box.dataset.family === one.dataset.of);
      if (whole) whole.checked = all("[data-of]").every((box) => box.dataset.of !== one.dataset.of || box.checked);
    }
    if (one.id === "held-agent") drawHolds();
    else if (one.closest(".controls")) drawAll();
  });
  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    const isDark = theme ? theme === "dark" : dark.matches;
    byId("theme").setAttribute("aria-pressed", String(isDark));
    drawAll();
  }
  byId("theme").addEventListener("click", () => {
    setTheme(byId("theme").getAttribute("aria-pressed") === "true" ? "light" : "dark");
  });
  byId("theme").setAttribute("aria-pressed", String(dark.matches));
  dark.addEventListener("change", () => setTheme(""));
  let themeBefore = "";
  addEventListener("beforeprint", () => {
    themeBefore = document.documentElement.dataset.theme || "";
    all("details").forEach((one) => { one.open = true; });
    printing = true;
    setTheme("light");
  });
  addEventListener("afterprint", () => { printing = false; setTheme(themeBefore); });

  // News ----------------------------------------------------------------------------------------------------
  async function watch() {
    const said = byId("live");
    let tag = "";
    for (;;) {
      try {
        const answer = await fetch("/news", { headers: tag ? { "If-None-Match": tag } : {} });
        if (answer.status === 200) {
          const before = tag;
          tag = answer.headers.get("ETag");
          const text = await answer.text();
          if (before) take(new DOMParser().parseFromString(text, "text/html"));
        }
        said.textContent = answer.ok || answer.status === 304 ? "watching" : "the folders cannot be shown now; trying again";
      } catch (error) {
        said.textContent = "the server has stopped";
      }
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
  function take(news) {
    const old = all("[data-live]"), fresh = all("[data-live]", news);
    if (old.length !== fresh.length) return location.reload();
    const boxes = all("[data-agent]").filter((box) => !box.checked).map((box) => box.dataset.agent);
    const chosen = byId("quantity") ? byId("quantity").value : "";
    const single = byId("single") && byId("single").checked, bands = byId("bands") && byId("bands").checked;
    const words = all("[data-filter]").map((input) => [input.id, input.value]);
    const focused = document.activeElement.id;
    const named = (one, place) => `${place} ${one.querySelector("summary").textContent.replace(/\d+/g, "")}`;
    const open = new Map(all("details").map((one, place) => [named(one, place), one.open]));
    old.forEach((part, place) => part.replaceChildren(...fresh[place].childNodes));
    data = JSON.parse(news.getElementById("data").textContent);
    all("[data-agent]").forEach((box) => { box.checked = !boxes.includes(box.dataset.agent); });
    if (byId("quantity")) { byId("quantity").value = chosen; byId("single").checked = single; byId("bands").checked = bands; }
    all("details").forEach((one, place) => { one.open = open.get(named(one, place)) ?? one.open; });
    for (const [id, value] of words) if (byId(id) && value) { byId(id).value = value; filter(byId(id)); }
    for (const [id, order] of Object.entries(orders)) if (byId(id)) sort(byId(id), ...order);
    if (focused && byId(focused)) byId(focused).focus();
    drawAll();
  }

  (async () => {
    try {
      await loadLibrary();
      drawAll();
      document.documentElement.dataset.drawn = "yes";
      if (byId("live")) watch();
    } catch (error) {
      byId("failure").hidden = false;
      byId("failure").textContent = `The charts cannot be drawn in this browser (${error.message}). Tables and pictures are below.`;
    }
  })();
})();
