//! Options of fio (3.33 and its manual after it) that are not supported, by the advice that goes with them.

#![forbid(unsafe_code)]

/// Advice, and the options it is for with blanks between them. An advice goes on after "option `x` is".
const REFUSED: &[(&str, &str)] = &[
    (
        "not supported: part of a file can't be flushed through a cipher; use fdatasync=N",
        "sync_file_range",
    ),
    (
        "not supported: throughput is looked at once a second; remove it",
        "steadystate_check_interval ss_interval",
    ),
    (
        "not supported yet; remove it",
        "io_submit_mode serialize_overlap bs_unaligned blocksize_unaligned bs_is_seq_rand \
         fill_device fill_fs offset_align write_barrier readfua \
         writefua overwrite softrandommap ignore_error error_dump pre_read invalidate \
         unified_rw_reporting",
    ),
    (
        "not supported: blocks are compared by the thread that reads them, after the last write, and \
         the first one that is wrong is described in the report; remove it",
        "verify_offset verify_pattern_interval verify_dump verify_async verify_async_cpus \
         verify_backlog verify_backlog_batch experimental_verify verify_state_load \
         verify_state_save verifysort verifysort_nr verify_header_seed verify_write_sequence",
    ),
    (
        "not supported: logs are those of write_bw_log, write_iops_log and write_lat_log, with log_avg_msec, \
         per_job_logs and log_entries; remove it",
        "write_hist_log log_hist_msec \
         log_hist_coarseness log_max_value log_window_value log_offset log_prio \
         log_compression log_compression_cpus log_store_compressed log_unix_epoch \
         log_alternate_epoch log_alternate_epoch_clock_id bwavgtime iopsavgtime \
         log_issue_time",
    ),
    (
        "not supported: requests are not recorded; take a trace with blktrace, and play it with \
         read_iolog",
        "write_iolog",
    ),
    (
        "not supported: play each trace in a job of its own, all at the same time",
        "merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters",
    ),
    (
        "not supported yet: only zonemode=strided is, with zonesize, zonerange and zoneskip; remove \
         it",
        "zonecapacity read_beyond_wp max_open_zones \
         job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency \
         recover_zbd_write_error",
    ),
    (
        "not supported: what repeats is the write before it, as with fio's default; use \
         dedupe_percentage alone",
        "dedupe_mode dedupe_working_set_percentage dedupe_global",
    ),
    (
        "not supported yet; use rate or rate_iops",
        "rate_min ratemin rate_iops_min rate_cycle ratecycle rate_ignore_thinktime flow flow_id \
         flow_watermark flow_sleep",
    ),
    (
        "not supported yet; use thinktime and thinktime_blocks",
        "thinktime_spin thinktime_blocks_type thinktime_iotime",
    ),
    (
        "not supported: trims are not measured; use reads and writes",
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch num_range",
    ),
    (
        "not supported: files are never removed, name a file of your own and remove it \
         afterwards",
        "unlink unlink_each_loop unique_filename",
    ),
    (
        "not supported: write the name with `filename`; new files need --create and are written \
         in full",
        "opendir lockfile create_serialize create_fsync create_on_open \
         create_only allow_file_create fallocate file_append filetype fadvise_hint \
         fsync_on_close",
    ),
    (
        "not supported: a mounted device is never written; unmount it",
        "allow_mounted_write",
    ),
    (
        "not supported: latency is always recorded, at a cost of nanoseconds; remove it",
        "gtod_reduce gtod_cpu disable_lat disable_clat disable_slat disable_bw_measurement \
         disable_bw clocksource stats disk_util significant_figures block_error_percentiles \
         unit_base",
    ),
    (
        "not supported: the program around it decides that; choose CPUs with cpus_allowed, and start crypt-bench with nice, ionice, \
         numactl or in a cgroup",
        "cpumask numa_cpu_nodes numa_mem_policy nice prio prioclass cgroup cgroup_nodelete \
         cgroup_weight uid gid log_cpus_allowed",
    ),
    (
        "not supported: request memory is mapped in huge pages where there are some; remove it",
        "mem iomem iomem_align mem_align hugepage-size lockmem",
    ),
    (
        "not supported: run it from a shell script around crypt-bench",
        "exec_prerun exec_postrun ioscheduler profile",
    ),
    (
        "not supported: a run ends where a request fails; jobs end by themselves, remove it",
        "exitall exit_what exitall_on_error",
    ),
    (
        "not supported: it has no meaning for the engines here; remove it",
        "atomic write_hint dataplacement plids fdp fdp_pli userspace_reap registerfiles \
         fixedbufs sqthread_poll sqthread_poll_cpu nonvectored cmdprio cmdprio_percentage \
         cmdprio_class cmdprio_bssplit uncached nowait force_async cpuload cpuchunks cpumode \
         hostname port sg_write_mode readahead apptag apptag_mask arguments bindname brick \
         busy_poll cdb_len chunk_size clientname clustername cmd_type cmdprio_hint comm conf \
         cont cuda_io donorname dp_scheme end_syncfs exit_on_io_done fdp_pli_select gpu_dev_ids \
         grace_time hdfsdirectory http_host http_mode http_object_mode http_pass http_s3_key \
         http_s3_keyid http_s3_region http_s3_security_token http_s3_sse_customer_algorithm \
         http_s3_sse_customer_key http_s3_storage_class http_swift_auth_token http_user \
         http_verbose https inplace interface job_start_clock_id libaio_vectored \
         libblkio_driver libblkio_force_enable_completion_eventfd libblkio_num_entries \
         libblkio_path libblkio_pre_connect_props libblkio_pre_start_props libblkio_queue_size \
         libblkio_vectored libblkio_wait_mode libblkio_write_zeroes_on_trim listen \
         md_per_io_size mss namenode nfs_url no_completion_thread nodelay numruns object_class \
         pi_act pi_chk pingpong plid_select pool priohint program proto protocol ramp_size \
         random_sequence_stride rbd_encryption_format rbd_encryption_passphrase rbdname \
         read_mode rocm_io single-instance skip_bad spr_cs spr_num_regions spr_op sprandom \
         stat_type std_redirect stream_id thinkcycles thp touch_objects ttl uri verb \
         verify_bytchk verify_mode verify_policy volume window_size write_mode \
         write_zone_remainders xnvme_admin xnvme_async xnvme_dev_nsid xnvme_dev_subnqn \
         xnvme_iovec xnvme_mem xnvme_sync hipri_percentage",
    ),
];

/// What to do instead of an option that fio has and this program has not.
pub(super) fn advice(name: &str) -> Option<&'static str> {
    let group = REFUSED
        .iter()
        .find(|(_, names)| names.split(' ').any(|known| known == name))?;
    Some(group.0)
}
