// Lets a timeline be zoomed and moved: every strip shows the same part of its time. Buttons, keys
// and the pointer all end in show(); without this script the whole of it stands.
(function () {
  "use strict";
  var WIDTH = 1e6;
  var LEAST = 100; // units: below that rectangles have no inside
  var KEPT = 0.1; // of a pixel's width left and right of a pointer still hits

  function significant(number) {
    return String(Number(number.toPrecision(4)));
  }

  function words(seconds, resolution) {
    var units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
    var unit = units.find(function (each) { return Math.abs(seconds) >= each[0]; }) || units[3];
    var places = Math.max(0, Math.min(6, Math.ceil(-Math.log10(resolution / unit[0]) - 1e-9)));
    return seconds === 0 ? "0" : (seconds / unit[0]).toFixed(places) + " " + unit[1];
  }

  function tickStep(span) {
    var magnitude = Math.pow(10, Math.floor(Math.log10(span / 5)));
    return [1, 2, 5, 10].map(function (each) { return each * magnitude; })
      .find(function (each) { return each >= span / 5 * 0.999; });
  }

  function rectangles(path) {
    if (!path.pieces) {
      var x = 0, y = 0;
      path.pieces = (path.getAttribute("d").match(/[Mm]-?\d+ -?\d+h\d+v\d+/g) || []).map(function (text) {
        var found = text.match(/-?\d+/g).map(Number);
        x += found[0];
        y += found[1];
        return { start: x, end: x + found[2], height: found[3] };
      });
    }
    return path.pieces;
  }

  function pieceAt(path, at, reach) {
    var pieces = rectangles(path), low = 0, high = pieces.length;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (pieces[middle].start <= at + reach) { low = middle + 1; } else { high = middle; }
    }
    var piece = pieces[low - 1];
    return piece && piece.end >= at - reach ? piece : null;
  }

  function bringToLife(figure) {
    var strips = figure.querySelector(".timeline-strips");
    var all = Array.from(figure.querySelectorAll(".timeline-strip"));
    var axis = figure.querySelector(".timeline-axis");
    var tools = figure.querySelector(".timeline-tools");
    var tip = document.getElementById("tip");
    var span = Number(strips.dataset.spanS);
    var view = { start: 0, width: WIDTH };
    var said = document.createElement("span");
    var pointers = new Map();

    function seconds(units) { return units / WIDTH * span; }

    function drawTicks() {
      var from = seconds(view.start), length = seconds(view.width), step = tickStep(length);
      axis.textContent = "";
      for (var n = Math.ceil(from / step - 1e-9); n * step <= from + length * 0.95; n += 1) {
        var tick = document.createElement("span");
        tick.textContent = words(n * step, step);
        tick.style.left = 100 * (n * step - from) / length + "%";
        axis.appendChild(tick);
      }
    }

    function show(start, width) {
      view.width = Math.min(WIDTH, Math.max(LEAST, width));
      view.start = Math.min(WIDTH - view.width, Math.max(0, start));
      all.forEach(function (strip) {
        strip.setAttribute("viewBox", view.start + " 0 " + view.width + " 16");
      });
      drawTicks();
      var step = seconds(view.width) / 100;
      said.textContent = view.width === WIDTH ? "all " + significant(span * 1e3) + " ms"
        : words(seconds(view.start), step) + " to " + words(seconds(view.start + view.width), step);
    }

    function zoom(factor, at) {
      var width = Math.min(WIDTH, Math.max(LEAST, view.width * factor));
      show(at - (at - view.start) * width / view.width, width);
    }

    function middle() { return view.start + view.width / 2; }

    function place(event) {
      var box = all[0].getBoundingClientRect();
      return { units: view.start + (event.clientX - box.left) / box.width * view.width, box: box };
    }

    function button(label, title, action) {
      var made = document.createElement("button");
      made.type = "button";
      made.textContent = label;
      made.title = title;
      made.setAttribute("aria-label", title);
      made.addEventListener("click", action);
      tools.appendChild(made);
    }

    button("+", "Zoom in", function () { zoom(0.5, middle()); });
    button("−", "Zoom out", function () { zoom(2, middle()); });
    button("←", "Earlier", function () { show(view.start - view.width / 4, view.width); });
    button("→", "Later", function () { show(view.start + view.width / 4, view.width); });
    button("all", "Show all of it", function () { show(0, WIDTH); });
    said.className = "timeline-said";
    said.setAttribute("role", "status");
    tools.appendChild(said);
    var keys = document.createElement("span");
    keys.className = "faint timeline-keys";
    keys.textContent = tools.dataset.keys;
    tools.appendChild(keys);

    strips.tabIndex = 0;
    strips.setAttribute("role", "application");
    strips.setAttribute("aria-label", "Timeline. " + tools.dataset.keys);
    strips.addEventListener("keydown", function (event) {
      var actions = {
        "+": function () { zoom(0.5, middle()); },
        "=": function () { zoom(0.5, middle()); },
        "-": function () { zoom(2, middle()); },
        "0": function () { show(0, WIDTH); },
        ArrowLeft: function () { show(view.start - view.width / 10, view.width); },
        ArrowRight: function () { show(view.start + view.width / 10, view.width); },
        Home: function () { show(0, view.width); },
        End: function () { show(WIDTH, view.width); }
      };
      if (actions[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        actions[event.key]();
      }
    });
    strips.addEventListener("wheel", function (event) {
      // A plain wheel scrolls the page; Ctrl, which a pinch on a touchpad is, too, zooms.
      var sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(Math.pow(1.002, Math.max(-300, Math.min(300, event.deltaY))), place(event).units);
      } else if (sideways) {
        event.preventDefault();
        show(view.start + event.deltaX / all[0].getBoundingClientRect().width * view.width, view.width);
      }
    }, { passive: false });
    strips.addEventListener("dblclick", function (event) { zoom(0.25, place(event).units); });

    // One pointer drags, two pinch.
    strips.addEventListener("pointerdown", function (event) {
      if (event.button === 0) { pointers.set(event.pointerId, event.clientX); }
    });
    function drag(event) {
      var width = all[0].getBoundingClientRect().width;
      var before = Array.from(pointers.values());
      var moved = event.clientX - pointers.get(event.pointerId);
      pointers.set(event.pointerId, event.clientX);
      var after = Array.from(pointers.values());
      if (before.length === 1) {
        show(view.start - moved / width * view.width, view.width);
      } else if (before.length === 2) {
        var was = Math.max(10, Math.abs(before[0] - before[1]));
        var is = Math.max(10, Math.abs(after[0] - after[1]));
        zoom(was / is, place({ clientX: (after[0] + after[1]) / 2 }).units);
      }
    }
    strips.addEventListener("pointermove", function (event) {
      if (pointers.has(event.pointerId)) {
        strips.setPointerCapture(event.pointerId);
        tip.style.display = "none";
        drag(event);
      } else {
        tell(event);
      }
    });
    ["pointerup", "pointercancel", "lostpointercapture"].forEach(function (name) {
      strips.addEventListener(name, function (event) { pointers.delete(event.pointerId); });
    });
    strips.addEventListener("pointerleave", function () { tip.style.display = "none"; });

    function tell(event) {
      var strip = event.target.closest ? event.target.closest(".timeline-strip") : null;
      tip.style.display = "none";
      if (!strip) { return; }
      var at = place(event), reach = view.width / at.box.width * KEPT;
      tip.textContent = "";
      strip.querySelectorAll("path[data-words]").forEach(function (path) {
        var piece = pieceAt(path, at.units, reach);
        if (!piece) { return; }
        var line = document.createElement("div"), name = document.createElement("b");
        var length = seconds(piece.end - piece.start);
        var share = piece.height < 16 ? Math.round(100 * piece.height / 16) + " % of " : "";
        name.textContent = path.dataset.words + " ";
        line.appendChild(name);
        line.appendChild(document.createTextNode(
          share + words(length, length / 100) + ", from " + words(seconds(piece.start), span / 1e4)));
        tip.appendChild(line);
      });
      if (!tip.firstChild) { return; }
      tip.style.display = "block";
      var right = window.scrollX + document.documentElement.clientWidth - tip.offsetWidth - 8;
      tip.style.left = Math.max(4, Math.min(event.pageX + 14, right)) + "px";
      tip.style.top = event.pageY + 16 + "px";
    }

    window.addEventListener("beforeprint", function () { show(0, WIDTH); });
    figure.classList.add("is-live");
    show(0, WIDTH);
  }

  document.querySelectorAll(".timeline").forEach(bringToLife);
})();
