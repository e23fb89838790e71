// The page of a report and the library that draws its plots, as the build found them.
#ifndef LEEWAY_BENCHMARKS_LAB_RESULTS_REPORT_PARTS_H_
#define LEEWAY_BENCHMARKS_LAB_RESULTS_REPORT_PARTS_H_

namespace leeway::lab {

extern const char kReportPage[];    // report.html, with /*CHART_JS*/ and /*DATA*/ in it
extern const char kChartLibrary[];  // Chart.js, minified

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_RESULTS_REPORT_PARTS_H_
