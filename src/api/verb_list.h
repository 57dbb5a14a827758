/* Every verb of the command line and every study, in the order of the help: VERB(task), where a
 * file defines the task. A new one is a file, and a line here. */
/* clang-format off */
VERB(n2_fit_task)
VERB(n2_score_task)
VERB(n2_info_task)
VERB(n2_divergence_task)
VERB(n2_mi_task)
VERB(n2_test_task)
VERB(n2_optimize_task)
VERB(n2_compare_task)
VERB(n2_draw_task)
VERB(n2_gaussian_task)
VERB(n2_ratio_study_task)
VERB(n2_bbo_study_task)
VERB(n2_bench_task)
VERB(n2_bench_step_task)
VERB(n2_bench_svgd_task)
VERB(n2_bench_matmul_task)
VERB(n2_bench_conv_task)
VERB(n2_bench_unet_task)
VERB(n2_bench_lebm_task)
VERB(n2_bench_ld_task)
/* clang-format on */
