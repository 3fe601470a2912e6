//! Network settings and the ledger a call runs at: parsed once, then only read.

use crate::{
    error::{from_soroban, host_error},
    xdr::decode,
};
use pyo3::{exceptions::PyValueError, prelude::*, pybacked::PyBackedBytes};
use soroban_env_host::{
    budget::Budget,
    meta::INTERFACE_VERSION,
    storage::{EntryWithLiveUntil, SnapshotSource},
    xdr::{
        ConfigSettingEntry, ConfigSettingId, LedgerEntry, LedgerEntryData, LedgerEntryExt,
        LedgerKey,
    },
    HostError, LedgerInfo as HostLedgerInfo,
};
use soroban_simulation::NetworkConfig;
use std::{collections::HashMap, rc::Rc};

/// The only ledger protocol that this host accepts.
pub const PROTOCOL_VERSION: u32 = INTERFACE_VERSION.protocol;

/// The configuration entries of a ledger, as the simulation library wants to read them.
struct Entries(HashMap<ConfigSettingId, ConfigSettingEntry>);

impl SnapshotSource for Entries {
    fn get(&self, key: &Rc<LedgerKey>) -> Result<Option<EntryWithLiveUntil>, HostError> {
        let LedgerKey::ConfigSetting(key) = key.as_ref() else {
            return Ok(None);
        };
        Ok(self.0.get(&key.config_setting_id).map(|setting| {
            let entry = LedgerEntry {
                last_modified_ledger_seq: 0,
                data: LedgerEntryData::ConfigSetting(setting.clone()),
                ext: LedgerEntryExt::V0,
            };
            (Rc::new(entry), None)
        }))
    }
}

impl Entries {
    fn parse(config_entries: &[PyBackedBytes]) -> PyResult<Self> {
        let mut entries = HashMap::with_capacity(config_entries.len());
        for (index, bytes) in config_entries.iter().enumerate() {
            let entry: ConfigSettingEntry =
                decode(&format!("config entry {index} (ConfigSettingEntry)"), bytes)?;
            entries.insert(entry.discriminant(), entry);
        }
        Ok(Self(entries))
    }

    /// The rent rate follows the average of the size window; one sample makes it the size itself.
    fn set_state_size(&mut self, size: Option<u64>) -> PyResult<()> {
        let id = ConfigSettingId::LiveSorobanStateSizeWindow;
        if size.is_some() || !self.0.contains_key(&id) {
            let samples = vec![size.unwrap_or(0)]
                .try_into()
                .map_err(|_| host_error("the Soroban state size does not fit its window"))?;
            self.0
                .insert(id, ConfigSettingEntry::LiveSorobanStateSizeWindow(samples));
        }
        Ok(())
    }
}

/// Takes one setting's payload out of the entries, or names it as missing.
macro_rules! setting {
    ($entries:expr, $variant:ident) => {
        match $entries.0.get(&ConfigSettingId::$variant) {
            Some(ConfigSettingEntry::$variant(setting)) => setting,
            _ => {
                return Err(host_error(concat!(
                    "network setting ",
                    stringify!($variant),
                    " is missing"
                )))
            }
        }
    };
}

/// The network's configuration, parsed once from ConfigSettingEntry XDRs.
#[pyclass(frozen, module = "mycelium_localnet._native")]
pub struct NetworkSettings {
    pub config: NetworkConfig,
    #[pyo3(get)]
    min_persistent_entry_ttl: u32,
    #[pyo3(get)]
    min_temporary_entry_ttl: u32,
    #[pyo3(get)]
    max_entry_ttl: u32,
    #[pyo3(get)]
    tx_max_instructions: i64,
    #[pyo3(get)]
    tx_memory_limit: u32,
    #[pyo3(get)]
    tx_max_size_bytes: u32,
    #[pyo3(get)]
    tx_max_disk_read_entries: u32,
    #[pyo3(get)]
    tx_max_disk_read_bytes: u32,
    #[pyo3(get)]
    tx_max_write_entries: u32,
    #[pyo3(get)]
    tx_max_write_bytes: u32,
    #[pyo3(get)]
    tx_max_footprint_entries: u32,
    #[pyo3(get)]
    tx_max_contract_events_size_bytes: u32,
    #[pyo3(get)]
    ledger_max_tx_count: u32,
    #[pyo3(get)]
    ledger_max_instructions: i64,
    #[pyo3(get)]
    ledger_max_txs_size_bytes: u32,
    #[pyo3(get)]
    ledger_max_disk_read_entries: u32,
    #[pyo3(get)]
    ledger_max_disk_read_bytes: u32,
    #[pyo3(get)]
    ledger_max_write_entries: u32,
    #[pyo3(get)]
    ledger_max_write_bytes: u32,
    #[pyo3(get)]
    max_contract_size_bytes: u32,
    #[pyo3(get)]
    max_contract_data_key_size_bytes: u32,
    #[pyo3(get)]
    max_contract_data_entry_size_bytes: u32,
    #[pyo3(get)]
    fee_per_10k_instructions: i64,
    #[pyo3(get)]
    fee_per_disk_read_entry: i64,
    #[pyo3(get)]
    fee_per_write_entry: i64,
    #[pyo3(get)]
    fee_per_disk_read_1kb: i64,
    #[pyo3(get)]
    fee_per_write_1kb: i64,
    #[pyo3(get)]
    fee_per_historical_1kb: i64,
    #[pyo3(get)]
    fee_per_contract_event_1kb: i64,
    #[pyo3(get)]
    fee_per_transaction_size_1kb: i64,
    #[pyo3(get)]
    fee_per_rent_1kb: i64,
    #[pyo3(get)]
    persistent_rent_rate_denominator: i64,
    #[pyo3(get)]
    temporary_rent_rate_denominator: i64,
}

#[pymethods]
impl NetworkSettings {
    #[new]
    #[pyo3(signature = (config_entries, soroban_state_size=None))]
    fn new(config_entries: Vec<PyBackedBytes>, soroban_state_size: Option<u64>) -> PyResult<Self> {
        let mut entries = Entries::parse(&config_entries)?;
        entries.set_state_size(soroban_state_size)?;
        let compute = setting!(entries, ContractComputeV0);
        let lanes = setting!(entries, ContractExecutionLanes);
        let bandwidth = setting!(entries, ContractBandwidthV0);
        let ledger_cost = setting!(entries, ContractLedgerCostV0);
        let ledger_cost_ext = setting!(entries, ContractLedgerCostExtV0);
        let events = setting!(entries, ContractEventsV0);
        let max_contract_size_bytes = *setting!(entries, ContractMaxSizeBytes);
        let max_contract_data_key_size_bytes = *setting!(entries, ContractDataKeySizeBytes);
        let max_contract_data_entry_size_bytes = *setting!(entries, ContractDataEntrySizeBytes);
        let config = NetworkConfig::load_from_snapshot(&entries)
            .map_err(|error| host_error(format!("network settings: {error:#}")))?;
        let settings = Self {
            min_persistent_entry_ttl: config.min_persistent_entry_ttl,
            min_temporary_entry_ttl: config.min_temp_entry_ttl,
            max_entry_ttl: config.max_entry_ttl,
            tx_max_instructions: config.tx_max_instructions,
            tx_memory_limit: config.tx_memory_limit,
            tx_max_size_bytes: bandwidth.tx_max_size_bytes,
            tx_max_disk_read_entries: ledger_cost.tx_max_disk_read_entries,
            tx_max_disk_read_bytes: ledger_cost.tx_max_disk_read_bytes,
            tx_max_write_entries: ledger_cost.tx_max_write_ledger_entries,
            tx_max_write_bytes: ledger_cost.tx_max_write_bytes,
            tx_max_footprint_entries: ledger_cost_ext.tx_max_footprint_entries,
            tx_max_contract_events_size_bytes: events.tx_max_contract_events_size_bytes,
            ledger_max_tx_count: lanes.ledger_max_tx_count,
            ledger_max_instructions: compute.ledger_max_instructions,
            ledger_max_txs_size_bytes: bandwidth.ledger_max_txs_size_bytes,
            ledger_max_disk_read_entries: ledger_cost.ledger_max_disk_read_entries,
            ledger_max_disk_read_bytes: ledger_cost.ledger_max_disk_read_bytes,
            ledger_max_write_entries: ledger_cost.ledger_max_write_ledger_entries,
            ledger_max_write_bytes: ledger_cost.ledger_max_write_bytes,
            max_contract_size_bytes,
            max_contract_data_key_size_bytes,
            max_contract_data_entry_size_bytes,
            fee_per_10k_instructions: config.fee_configuration.fee_per_instruction_increment,
            fee_per_disk_read_entry: config.fee_configuration.fee_per_disk_read_entry,
            fee_per_write_entry: config.fee_configuration.fee_per_write_entry,
            fee_per_disk_read_1kb: config.fee_configuration.fee_per_disk_read_1kb,
            fee_per_write_1kb: config.fee_configuration.fee_per_write_1kb,
            fee_per_historical_1kb: config.fee_configuration.fee_per_historical_1kb,
            fee_per_contract_event_1kb: config.fee_configuration.fee_per_contract_event_1kb,
            fee_per_transaction_size_1kb: config.fee_configuration.fee_per_transaction_size_1kb,
            fee_per_rent_1kb: config.rent_fee_configuration.fee_per_rent_1kb,
            persistent_rent_rate_denominator: config
                .rent_fee_configuration
                .persistent_rent_rate_denominator,
            temporary_rent_rate_denominator: config
                .rent_fee_configuration
                .temporary_rent_rate_denominator,
            config,
        };
        settings.budget(0)?;
        Ok(settings)
    }
}

impl NetworkSettings {
    /// A fresh budget with the network's cost parameters and memory limit.
    pub fn budget(&self, instructions: u32) -> PyResult<Budget> {
        Budget::try_from_configs(
            u64::from(instructions),
            u64::from(self.tx_memory_limit),
            self.config.cpu_cost_params.clone(),
            self.config.memory_cost_params.clone(),
        )
        .map_err(|error| from_soroban("the cost parameters are not usable", &error))
    }
}

/// The ledger a call runs at.
#[pyclass(frozen, module = "mycelium_localnet._native")]
pub struct LedgerInfo {
    pub host: HostLedgerInfo,
    #[pyo3(get)]
    pub settings: Py<NetworkSettings>,
}

#[pymethods]
impl LedgerInfo {
    #[new]
    #[pyo3(signature = (*, sequence, close_time, network_id, base_reserve, settings))]
    fn new(
        sequence: u32,
        close_time: u64,
        network_id: PyBackedBytes,
        base_reserve: u32,
        settings: Py<NetworkSettings>,
    ) -> PyResult<Self> {
        let mut host = HostLedgerInfo {
            protocol_version: PROTOCOL_VERSION,
            sequence_number: sequence,
            timestamp: close_time,
            network_id: array32("network_id", &network_id)?,
            base_reserve,
            ..HostLedgerInfo::default()
        };
        settings
            .get()
            .config
            .fill_config_fields_in_ledger_info(&mut host);
        Ok(Self { host, settings })
    }

    #[getter]
    fn sequence(&self) -> u32 {
        self.host.sequence_number
    }

    #[getter]
    fn close_time(&self) -> u64 {
        self.host.timestamp
    }

    #[getter]
    fn network_id(&self) -> &[u8] {
        &self.host.network_id
    }

    #[getter]
    fn base_reserve(&self) -> u32 {
        self.host.base_reserve
    }
}

impl LedgerInfo {
    pub fn network(&self) -> &NetworkSettings {
        self.settings.get()
    }
}

/// 32 bytes of an argument, or a ValueError that names it.
pub fn array32(name: &str, bytes: &[u8]) -> PyResult<[u8; 32]> {
    bytes
        .try_into()
        .map_err(|_| PyValueError::new_err(format!("{name} must be 32 bytes, not {}", bytes.len())))
}
